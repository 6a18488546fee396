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
	// Of is the unit of the cost, and Count the number of units in one instance.
	Of    string
	Count int
	// Cold turns off the cache of instances, so each turn reads the whole history.
	Cold bool
	// AtOnce is the number of instances that start together, and Concurrency the number of concurrent invocations of
	// each function. If AtOnce is 0, one instance runs alone.
	AtOnce, Concurrency int
	// Drive makes the calls of a client after the start. It is nil if there are none.
	Drive func(ctx context.Context, c *client.Client, id string) error
	// Long is true if the measurement takes seconds.
	Long bool
	// Exclude is the run time of activities. The cost of the engine excludes it.
	Exclude time.Duration
	// Afterwards, if set, is measured instead of the instances. It runs when they have ended and the queues are empty.
	Afterwards func(ctx context.Context, h *simhub.Hub, invoked func(function string, took time.Duration)) error
	// Asked is the target for the cost of a million units, in dollars, or 0 without a target.
	Asked float64
}

// Units of the cost of shapes.
const (
	activities = "activities"
	timers     = "timers"
	children   = "sub-orchestrations"
)

// OfActivities reports whether the unit of the cost is an activity.
func (s *Shape) OfActivities() bool { return s.Of == activities }

// InBatches reports whether many activities of a shape run concurrently. The batches of their messages vary at random.
func (s *Shape) InBatches() bool {
	return s.Count >= manyAtOnce && s.Orchestration != chainName && s.Orchestration != inlineName
}

const manyAtOnce = 1000

// Names of orchestrations that several shapes use.
const (
	chainName = "Chain"
	fanName   = "Fan"
	// inlineName is the name of a chain of inline activities.
	inlineName = "InlineChain"
)

// Shapes returns the workloads in the order of docs/operate/scale.md.
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

// Registry returns the code of the shapes. The activities do no work, so that the measured cost is the cost of the
// engine.
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

// linger waits until it is cancelled.
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

// crowd calls n activities, and cancels them at the event "enough".
func crowd(ctx *perdure.OrchestrationContext, n int) (int, error) {
	all := []perdure.Awaitable{perdure.WaitForExternalEvent[bool](ctx, "enough")}
	for i := range n {
		all = append(all, perdure.CallActivity(ctx, linger, i))
	}
	return perdure.Select(ctx, all...)
}

// begins is the time for the activities of a crowd to start.
const begins = 2 * time.Second

func callOff(ctx context.Context, c *client.Client, id string) error {
	time.Sleep(begins)
	return c.RaiseEvent(ctx, id, "enough", true)
}
