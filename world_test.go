package perdure_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/internal/replay/retry"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// world runs one instance with its activities and timers in memory, in the order of their IDs.
type world struct {
	t        testing.TB
	registry *perdure.Registry
	version  string // empty means the highest
	options  replay.Options
	code     replay.Orchestration
	instance *replay.Instance
	history  []history.Event
	now      time.Time
	due      []history.Event // pending outcomes; FireAt is the time of their arrival
	took     map[string]time.Duration
	detached map[string]history.Event // the ends of detached orchestrations by instance ID
}

// codeOf returns a registry with the methods for dispatchers.
func codeOf(r *perdure.Registry) *registry.Registry { return (*registry.Registry)(r) }

// exampleTB replaces the testing.TB that examples do not have.
type exampleTB struct{ testing.TB }

func (exampleTB) Helper()                   {}
func (exampleTB) Cleanup(func())            {}
func (exampleTB) Fatal(args ...any)         { panic(fmt.Sprint(args...)) }
func (exampleTB) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }

// example runs an orchestration to its end and returns its output.
func example(r *perdure.Registry, name string, input any) string {
	w := newWorld(exampleTB{}, r).start(name, input).run()
	defer w.instance.Close()
	return w.output()
}

func newWorld(tb testing.TB, r *perdure.Registry) *world {
	tb.Helper()
	return &world{
		t: tb, registry: r, now: epoch, took: map[string]time.Duration{}, detached: map[string]history.Event{},
		// The limit suffices on a busy machine with the race detector.
		options: replay.Options{
			InstanceID: "order-17", ExecutionID: "01JEXECUTION", ExactRetries: true, BuildID: "test",
			TurnTimeout: 2 * time.Minute,
		},
	}
}

// start makes an instance and runs its first turn.
func (w *world) start(name string, input any) *world {
	w.t.Helper()
	code, ok := codeOf(w.registry).Orchestration(name, w.version)
	if !ok {
		w.t.Fatalf("orchestration %q is not registered", name)
	}
	doc, ok := input.(json.RawMessage)
	if !ok {
		var err error
		if doc, err = json.Marshal(input); err != nil {
			w.t.Fatal(err)
		}
	}
	w.code = code
	w.history = []history.Event{
		{
			ID: 1, Kind: history.OrchestrationStarted, Time: w.now, Name: name, Input: history.NewInlinePayload(doc),
			StartID: "s", Number: 1,
		},
	}
	w.instance = w.open()
	if err := w.instance.Replay(w.history); err != nil {
		w.t.Fatal(err)
	}
	return w.turn()
}

func (w *world) open() *replay.Instance {
	x := replay.New(w.code, w.options)
	w.t.Cleanup(func() { x.Close() })
	return x
}

// turn applies inputs, each in a message of its own, and starts the scheduled tasks.
func (w *world) turn(inputs ...history.Event) *world {
	w.t.Helper()
	if err := w.tryTurn(inputs...); err != nil {
		w.t.Fatal(err)
	}
	return w
}

func (w *world) tryTurn(inputs ...history.Event) error {
	copied := slices.Clone(inputs)
	messages := make([][]history.Event, len(inputs))
	for i := range inputs {
		messages[i] = copied[i : i+1]
	}
	out, err := w.instance.Turn(replay.Turn{
		Now: w.now, Version: w.code.Version, BuildID: "test", Inputs: messages, Buffer: make([]history.Event, 0, 8),
	})
	if err != nil {
		return err
	}
	w.history = append(w.history, out.Events...)
	came := w.history[len(w.history)-len(out.Events):]
	clear(copied) // the instance must not refer to these events after the turn
	clear(out.Events)
	for i := range came {
		w.dispatch(&came[i])
	}
	if out.Continued != nil {
		w.next(out.Continued, inputs[out.Consumed:])
	}
	return nil
}

// next starts the next execution of an instance that continued as new, with the inputs that were not applied.
func (w *world) next(c *replay.Continuation, rest []history.Event) {
	w.t.Helper()
	w.replayed()
	first := w.history[0]
	first.Time, first.Input, first.CarriedEvents, first.EventIDs, first.Number = w.now, c.Input, c.Events, c.EventIDs,
		first.Number+1
	if first.Number > 1000 {
		w.t.Fatal("the instance continues as new without end")
	}
	w.options.ExecutionID = fmt.Sprint("01JEXECUTION", first.Number)
	w.history, w.due, w.instance = []history.Event{first}, nil, w.open()
	if err := w.instance.Replay(w.history); err != nil {
		w.t.Fatal(err)
	}
	w.turn().turn(rest...)
}

func (w *world) dispatch(ev *history.Event) {
	switch ev.Kind {
	case history.ActivityScheduled:
		if a, ok := codeOf(w.registry).Activity(ev.Name); ok {
			at := w.now.Add(w.took[ev.Name])
			w.due = append(w.due, w.outcome(a, ev, &at))
		}
	case history.TimerCreated:
		w.due = append(w.due, history.Event{Kind: history.TimerFired, SourceEventID: ev.ID, FireAt: ev.FireAt})
	case history.SubOrchestrationScheduled:
		if _, ok := codeOf(w.registry).Orchestration(ev.Name, ev.Version); ok {
			w.due = append(w.due, w.child(ev))
		}
	case history.DetachedOrchestrationScheduled:
		w.detached[ev.InstanceID] = w.child(ev)
	}
}

// child runs another instance to its end.
func (w *world) child(ev *history.Event) history.Event {
	w.t.Helper()
	input, _ := ev.Input.Document()
	c := newWorld(w.t, w.registry)
	c.options.InstanceID, c.options.ExecutionID, c.version, c.now, c.took = ev.InstanceID, "01JCHILD"+ev.StartID,
		ev.Version, w.now, w.took
	end := c.start(ev.Name, input).run().replayed().end()
	c.instance.Close()
	if end.Kind == history.OrchestrationCancelled {
		end.Kind, end.Error = history.OrchestrationFailed, &history.Failure{
			Type: history.TypeCancelled, Reason: end.Reason, Message: end.Message,
		}
	}
	if end.Kind == history.OrchestrationFailed {
		return history.Event{
			Kind: history.SubOrchestrationFailed, SourceEventID: ev.ID, InstanceID: ev.InstanceID, Error: end.Error,
			FireAt: &c.now,
		}
	}
	return history.Event{
		Kind: history.SubOrchestrationCompleted, SourceEventID: ev.ID, Result: end.Output, FireAt: &c.now,
	}
}

func (w *world) outcome(a registry.Activity, ev *history.Event, at *time.Time) history.Event {
	input, _ := ev.Input.Document()
	result, failure := a.Run(context.Background(), input)
	for attempt := 1; failure != nil; attempt++ {
		delay, again := retry.Next(ev.Retry, w.options.ExecutionID, ev.ID, attempt, failure)
		if !again {
			break
		}
		*at = at.Add(delay)
		result, failure = a.Run(context.Background(), input)
	}
	if failure != nil {
		return history.Event{Kind: history.ActivityFailed, SourceEventID: ev.ID, Error: failure, Attempt: 1, FireAt: at}
	}
	return history.Event{
		Kind: history.ActivityCompleted, SourceEventID: ev.ID, Result: history.NewInlinePayload(result), Attempt: 1,
		FireAt: at,
	}
}

// run runs turns until the instance has ended or has no pending outcomes.
func (w *world) run() *world {
	w.t.Helper()
	for len(w.due) > 0 && !w.instance.Ended() {
		w.step()
	}
	return w
}

// step advances the time to the next outcome and runs the turn that applies it.
func (w *world) step() {
	w.t.Helper()
	first := slices.MinFunc(w.due, func(a, b history.Event) int { return a.FireAt.Compare(*b.FireAt) })
	w.due = slices.DeleteFunc(w.due, func(e history.Event) bool { return e.SourceEventID == first.SourceEventID })
	w.now = *first.FireAt
	first.FireAt = nil
	w.turn(first)
}

// end returns the last event and requires that it ends the execution.
func (w *world) end() history.Event {
	w.t.Helper()
	last := w.history[len(w.history)-1]
	if !last.Kind.Terminal() {
		w.t.Fatalf("the instance has not ended: %s", last.String())
	}
	return last
}

// output returns the result of the orchestration as JSON.
func (w *world) output() string {
	w.t.Helper()
	last := w.end()
	if last.Kind != history.OrchestrationCompleted {
		w.t.Fatalf("%s: got %+v", last.Kind, last.Error)
	}
	return string(last.Output)
}

// failure returns the failure of the orchestration.
func (w *world) failure() history.Failure {
	w.t.Helper()
	last := w.end()
	if last.Kind != history.OrchestrationFailed {
		w.t.Fatalf("%s: got %s", last.Kind, last.Output)
	}
	return *last.Error
}

// cancelled returns the reason and message of a cancelled orchestration.
func (w *world) cancelled() string {
	w.t.Helper()
	last := w.end()
	if last.Kind != history.OrchestrationCancelled {
		w.t.Fatalf("%s: got %s, %+v", last.Kind, last.Output, last.Error)
	}
	return last.Reason + ": " + last.Message
}

// cancel returns the request of a client to cancel the instance.
func cancel(message string) history.Event {
	return history.Event{
		Kind: history.CancelRequested, Reason: "requested", Message: message, RequestedBy: history.RequestedByClient,
	}
}

// replayed checks that a cold instance can replay the history.
func (w *world) replayed() *world {
	w.t.Helper()
	b, err := history.Encode(w.history)
	if err != nil {
		w.t.Fatal(err)
	}
	events, err := history.Decode(b)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.open().Replay(events); err != nil {
		w.t.Fatal(err)
	}
	return w
}

func inc(_ context.Context, n int) (int, error) { return n + 1, nil }

// orchestrate registers fn as "o", with the activity "inc", and starts it.
func orchestrate[Out any](tb testing.TB, fn func(*perdure.OrchestrationContext, int) (Out, error)) *world {
	tb.Helper()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "inc", inc)
	perdure.AddOrchestration(r, "o", fn)
	return newWorld(tb, r).start("o", 1)
}
