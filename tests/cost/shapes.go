package cost

import (
	"context"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simhub"
)

// Shape is an orchestration whose cost is measured.
type Shape struct {
	Name          string
	Orchestration string
	Input         any
	// Of is what it is reckoned by, and Count how many of these one instance has.
	Of    string
	Count int
	// Cold is that no process keeps an instance: each turn reads the whole history.
	Cold bool
	// AtOnce is how many instances are started together, and Concurrency how many invocations of a function there are
	// then at once; 0 is one instance, with nobody beside it.
	AtOnce, Concurrency int
	// Drive is what a client does once the instance is started; nil is nothing.
	Drive func(ctx context.Context, c *client.Client, id string) error
	// Long is that it takes seconds to measure.
	Long bool
	// Exclude is run time of activities, which is not the engine's cost.
	Exclude time.Duration
	// Afterwards, if set, is measured instead of the instances. It runs when they have ended and the queues are empty.
	Afterwards func(ctx context.Context, h *simhub.Hub, invoked func(function string, took time.Duration)) error
	// Asked is how many dollars they are to cost; 0 is that nothing was asked for.
	Asked float64
}

// What shapes are reckoned by.
const (
	activities = "activities"
	timers     = "timers"
	children   = "sub-orchestrations"
)

// OfActivities reports whether a shape is reckoned by its activities.
func (s *Shape) OfActivities() bool { return s.Of == activities }

// InBatches reports whether many activities of a shape run side by side: chance has a say in how their messages come
// together.
func (s *Shape) InBatches() bool {
	return s.Count >= manyAtOnce && s.Orchestration != chainName && s.Orchestration != inlineName
}

const manyAtOnce = 1000

// Orchestrations of which several shapes are.
const (
	chainName = "Chain"
	fanName   = "Fan"
	// inlineName is a chain whose activities run in the turn.
	inlineName = "InlineChain"
)

// Shapes are the workloads of docs/operate/scale.md, in its order.
func Shapes() []Shape {
	return []Shape{
		{Name: "chain of 10, worker", Orchestration: chainName, Input: 10, Of: activities, Count: 10, Asked: 4.9},
		{Name: "chain of 10, worker, cold", Orchestration: chainName, Input: 10, Of: activities, Count: 10, Cold: true},
		{
			Name: "chain of 10, worker, 100 at once", Orchestration: chainName, Input: 10, Of: activities, Count: 10,
			AtOnce: 100, Concurrency: 5,
		},
		{Name: "chain of 1,600, worker", Orchestration: chainName, Input: 1600, Of: activities, Count: 1600},
		{
			Name: "chain of 1,600, worker, cold", Orchestration: chainName, Input: 1600, Of: activities, Count: 1600,
			Cold: true, Long: true,
		},
		{Name: "chain of 10, inline", Orchestration: inlineName, Input: 10, Of: activities, Count: 10, Asked: 1.2},
		{Name: "chain of 1,600, inline", Orchestration: inlineName, Input: 1600, Of: activities, Count: 1600},
		{Name: "fan-out of 5", Orchestration: fanName, Input: 5, Of: activities, Count: 5},
		{Name: "fan-out of 1,000", Orchestration: fanName, Input: 1000, Of: activities, Count: 1000, Asked: 0.8},
		{Name: "fan-out of 1,000, cold", Orchestration: fanName, Input: 1000, Of: activities, Count: 1000, Cold: true},
		{
			Name: "activity that wins a race with a timer", Orchestration: "Race", Input: time.Hour, Of: activities,
			Count: 1,
		},
		{Name: "timer of a day", Orchestration: "Sleep", Input: 24 * time.Hour, Of: timers, Count: 1},
		{Name: "10 sub-orchestrations of an activity", Orchestration: "Family", Input: 10, Of: children, Count: 10},
		{
			Name: "cancel of 2,000 running activities", Orchestration: "Crowd", Input: 2000, Of: activities,
			Count: 2000, Drive: callOff,
		},
	}
}

// Registry is the code of the shapes. Its activities do nothing: what they do themselves is not what the engine costs.
func Registry() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "increment", increment)
	perdure.AddActivity(r, "linger", linger)
	perdure.AddOrchestration(r, chainName, chain)
	perdure.AddOrchestration(r, inlineName, inlineChain)
	perdure.AddOrchestration(r, fanName, fan)
	perdure.AddOrchestration(r, "Race", race)
	perdure.AddOrchestration(r, "Sleep", rest)
	perdure.AddOrchestration(r, "Family", family)
	perdure.AddOrchestration(r, "Crowd", crowd)
	addBlocks(r)
	return r
}

func increment(_ context.Context, n int) (int, error) { return n + 1, nil }

// linger works until it is cancelled.
func linger(ctx context.Context, _ int) (int, error) {
	<-ctx.Done()
	return 0, context.Cause(ctx)
}

func chain(ctx *perdure.OrchestrationContext, n int) (int, error) { return inARow(ctx, n) }

func inlineChain(ctx *perdure.OrchestrationContext, n int) (int, error) {
	return inARow(ctx, n, perdure.Inline())
}

func inARow(ctx *perdure.OrchestrationContext, n int, options ...perdure.ActivityCallOption) (v int, err error) {
	for range n {
		if v, err = perdure.CallActivity(ctx, increment, v, options...).Await(ctx); err != nil {
			return 0, err
		}
	}
	return v, nil
}

func fan(ctx *perdure.OrchestrationContext, n int) (int, error) {
	all := make([]perdure.Awaitable, n)
	for i := range all {
		all[i] = perdure.CallActivity(ctx, increment, i)
	}
	return n, perdure.WhenAll(ctx, all...)
}

func race(ctx *perdure.OrchestrationContext, timeout time.Duration) (int, error) {
	return perdure.Select(ctx, perdure.CallActivity(ctx, increment, 1), perdure.CreateTimer(ctx, timeout))
}

func rest(ctx *perdure.OrchestrationContext, d time.Duration) (time.Time, error) {
	return perdure.CreateTimer(ctx, d).Await(ctx)
}

func family(ctx *perdure.OrchestrationContext, n int) (int, error) {
	all := make([]perdure.Awaitable, n)
	for i := range all {
		all[i] = perdure.CallSubOrchestration(ctx, chain, 1)
	}
	return n, perdure.WhenAll(ctx, all...)
}

// crowd calls n activities, and all of them off when it is told so.
func crowd(ctx *perdure.OrchestrationContext, n int) (int, error) {
	all := []perdure.Awaitable{perdure.WaitForExternalEvent[bool](ctx, "enough")}
	for i := range n {
		all = append(all, perdure.CallActivity(ctx, linger, i))
	}
	return perdure.Select(ctx, all...)
}

// begins is how long a crowd is given to begin.
const begins = 2 * time.Second

func callOff(ctx context.Context, c *client.Client, id string) error {
	time.Sleep(begins)
	return c.RaiseEvent(ctx, id, "enough", true)
}
