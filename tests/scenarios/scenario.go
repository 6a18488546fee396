package scenarios

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// Scenario is an orchestration, what a client does meanwhile, and how it must end.
type Scenario struct {
	// Name is that of the test, and of the orchestration that is started.
	Name string
	// Register adds the orchestration under the scenario's name, and what it alone needs.
	Register func(r *perdure.Registry, name string)
	// Hold gives the activities of a process the client that they hold, before any of them runs; nil where they hold
	// none.
	Hold  func(c *client.Client)
	Input any
	Start []client.StartOption
	// Drive is what a client does once the instance is started; nil is nothing.
	Drive func(ctx context.Context, w World, id string) error
	// Check says what is wrong with the status of the instance that is over.
	Check Check
	// Calm is checked besides where nothing is made to fail, once what the end has led to is done; nil is nothing.
	Calm Check
	// Virtual: it takes hours, so it needs virtual time.
	Virtual bool
	// Large: its hub needs a bucket for large payloads.
	Large bool
	// Long: it makes hundreds of AWS calls.
	Long bool
}

// Check says what is wrong with how an instance ended. The client is for what else there must be.
type Check func(ctx context.Context, c *client.Client, s client.Status) error

// World is where a scenario runs.
type World struct {
	Client *client.Client
	// Holder holds the tokens of activities; nil is the client.
	Holder Holder
	// Tick is the unit of the scenario's durations.
	Tick time.Duration
	// Pass lets time pass, and what is due by then happen.
	Pass func(d time.Duration)
}

// looks is how often until looks, four times a tick: far longer than any crash delays anything.
const looks = 1000

// until lets time pass until the instance is as wanted. An instance that is not there yet is waited for.
func (w World) until(ctx context.Context, id string, wanted func(s client.Status) bool) error {
	for range looks {
		if s, err := w.Client.Status(ctx, id); err == nil && wanted(s) {
			return nil
		}
		w.Pass(w.Tick / 4)
	}
	s, err := w.Client.Status(ctx, id)
	return errors.Join(fmt.Errorf("instance %q did not come to be as wanted: it is %s, custom status %s", id, s.Status,
		s.CustomStatus), err)
}

// untilStatus lets time pass until the instance's custom status is this text.
func (w World) untilStatus(ctx context.Context, id, want string) error {
	return w.until(ctx, id, func(s client.Status) bool { return string(s.CustomStatus) == fmt.Sprintf("%q", want) })
}

// All are the scenarios, their durations in ticks. What in them keeps count is new in each call.
//
// Where one of two must win, they are so many ticks apart that with ticks of a minute no single crash changes the
// winner: a message comes back after a minute or two, a work item after 15. On a real clock a tick must be several
// times what a turn takes.
func All(tick time.Duration) []Scenario {
	return slices.Concat(
		basics(), inlined(tick), bulky(), statuses(tick), failures(tick), sagas(), races(tick), combinators(tick),
		mapping(tick), retries(tick), polling(tick), children(), failingChildren(),
		detached(tick), continuing(tick), events(tick), pausing(tick), talking(tick), asking(), sizedInputs(),
		calling(), delegating(tick), handing(tick), restarting(tick), replacing(tick), determinism(tick),
		coroutines(tick), versions(), changes(), starts(tick), unobserved(tick), everything(tick), cancelling(tick),
		stopping(tick),
	)
}

// Register adds what the given scenarios run.
func Register(r *perdure.Registry, all ...Scenario) {
	addActivities(r)
	addHelpers(r)
	addStopping(r)
	addLarge(r)
	addHanding(r)
	for _, s := range all {
		s.Register(r, s.Name)
	}
}

// Hold gives the activities of these scenarios, which a process runs, a client of its hub.
func Hold(c *client.Client, all ...Scenario) {
	for _, s := range all {
		if s.Hold != nil {
			s.Hold(c)
		}
	}
}

// body registers a function as the scenario's orchestration.
func body[In, Out any](
	fn func(*perdure.OrchestrationContext, In) (Out, error), more ...func(r *perdure.Registry),
) func(r *perdure.Registry, name string) {
	return func(r *perdure.Registry, name string) {
		perdure.AddOrchestration(r, name, fn)
		for _, add := range more {
			add(r)
		}
	}
}

// also registers a further orchestration.
func also[In, Out any](
	name string, fn func(*perdure.OrchestrationContext, In) (Out, error), opts ...perdure.OrchestrationOption,
) func(r *perdure.Registry) {
	return func(r *perdure.Registry) { perdure.AddOrchestration(r, name, fn, opts...) }
}
