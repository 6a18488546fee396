package scale

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// Shapes returns the shapes in the order of docs/operate/scale.md. The page defines the times step, total and cancel.
// The input of a shape is the number of activities in each instance.
func Shapes() []Shape {
	return []Shape{
		{Name: "chain of 10, worker", Orchestration: "Chain", Input: 10, Of: "step"},
		{Name: "chain of 10, inline", Orchestration: "InlineChain", Input: 10, Of: "step"},
		{Name: "fan-out of 5", Orchestration: "Fan", Input: 5, Of: "total"},
		{Name: "fan-out of 1,000", Orchestration: "Fan", Input: 1000, Of: "total"},
		{Name: "cancel of 5 that run", Orchestration: "Crowd", Input: 5, Of: "cancel", Drive: callOff},
	}
}

// The activities of the shapes. Orchestrations call them by reference, because each run registers other functions.
var (
	step   = perdure.DefineActivity[int, int]("step")
	brief  = perdure.DefineActivity[int, int]("brief", perdure.Inline())
	quick  = perdure.DefineActivity[int, int]("quick")
	linger = perdure.DefineActivity[int, int]("linger")
)

// registry returns the code of the shapes. The activities take no time.
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

// settles is the minimum time for the activities of a crowd to start. A random part of a second is added, so that the
// phase of the cancel polls does not affect the result.
const settles = 5 * time.Second

func callOff(ctx context.Context, c *client.Client, id string, w *Watch) error {
	time.Sleep(settles + rand.N(time.Second))
	w.begin(id)
	return c.RaiseEvent(ctx, id, "enough", true)
}
