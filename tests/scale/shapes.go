package scale

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// Shapes are what docs/operate/scale.md has, in its order. The number in flight is of instances, each of which has as
// many activities as its name says. The page defines the times: step, total and cancel.
func Shapes() []Shape {
	return []Shape{
		{Name: "chain of 10, worker", Orchestration: "Chain", Input: 10, Of: "step"},
		{Name: "chain of 10, inline", Orchestration: "InlineChain", Input: 10, Of: "step"},
		{Name: "fan-out of 5", Orchestration: "Fan", Input: 5, Of: "total"},
		{Name: "fan-out of 1,000", Orchestration: "Fan", Input: 1000, Of: "total"},
		{Name: "cancel of 5 that run", Orchestration: "Crowd", Input: 5, Of: "cancel", Drive: callOff},
	}
}

// The activities of the shapes: their code is another one in each run, so that they are called by what names them.
var (
	step   = perdure.DefineActivity[int, int]("step")
	brief  = perdure.DefineActivity[int, int]("brief", perdure.Inline())
	quick  = perdure.DefineActivity[int, int]("quick")
	linger = perdure.DefineActivity[int, int]("linger")
)

// registry is the code of the shapes. Its activities take no time.
func registry(w *Watch) *perdure.Registry {
	r := perdure.NewRegistry()
	step.Register(r, func(ctx context.Context, n int) (int, error) {
		w.step(activityOf(ctx))
		return n + 1, nil
	})
	brief.Register(r, func(ctx context.Context, n int) (int, error) {
		w.step(activityOf(ctx))
		return n + 1, nil
	})
	quick.Register(r, func(_ context.Context, n int) (int, error) { return n + 1, nil })
	linger.Register(r, func(ctx context.Context, _ int) (int, error) {
		<-ctx.Done()
		w.end(activityOf(ctx))
		return 0, context.Cause(ctx)
	})
	chain := func(step perdure.ActivityRef[int, int]) func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		return func(ctx *perdure.OrchestrationContext, n int) (v int, err error) {
			for range n {
				if v, err = step.Call(ctx, v).Await(ctx); err != nil {
					return 0, err
				}
			}
			return v, nil
		}
	}
	perdure.AddOrchestration(r, "Chain", chain(step))
	perdure.AddOrchestration(r, "InlineChain", chain(brief))
	perdure.AddOrchestration(r, "Fan", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		w.begin(ctx.InstanceID())
		all := make([]perdure.Awaitable, n)
		for i := range all {
			all[i] = quick.Call(ctx, i)
		}
		err := perdure.WhenAll(ctx, all...)
		w.end(ctx.InstanceID())
		return n, err
	})
	perdure.AddOrchestration(r, "Crowd", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		all := []perdure.Awaitable{perdure.WaitForExternalEvent[bool](ctx, "enough")}
		for i := range n {
			all = append(all, linger.Call(ctx, i))
		}
		return perdure.Select(ctx, all...)
	})
	return r
}

// The activities of a crowd are given so long to run, and up to a second more, so that no phase of the looks at cancels
// is favoured.
const settles = 5 * time.Second

func callOff(ctx context.Context, c *client.Client, id string, w *Watch) error {
	time.Sleep(settles + rand.N(time.Second))
	w.begin(id)
	return c.RaiseEvent(ctx, id, "enough", true)
}
