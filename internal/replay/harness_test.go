package replay_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

var options = replay.Options{InstanceID: "order-17", ExecutionID: "01JEXECUTION"}

var started = history.Event{
	ID: 1, Kind: history.OrchestrationStarted, Time: epoch, Name: "o", Input: history.Payload("1"),
}

var completed = replay.Ending{Kind: history.OrchestrationCompleted, Output: json.RawMessage(`"done"`)}

// body returns an orchestration that completes when fn returns.
func body(fn func(*replay.Context)) replay.Orchestration {
	return replay.Orchestration{
		Name: "o", Version: "1",
		Body: func(c *replay.Context, _ json.RawMessage) replay.Ending {
			fn(c)
			return completed
		},
	}
}

func activity(c *replay.Context, name string) *replay.Task {
	return c.ScheduleActivity(replay.ActivityCall{Name: name, Queue: "default", Input: json.RawMessage("1")})
}

// instance returns an instance before its first turn.
func instance(tb testing.TB, o replay.Orchestration) *replay.Instance {
	tb.Helper()
	x := replay.New(o, options)
	tb.Cleanup(func() { x.Close() })
	if err := x.Replay([]history.Event{started}); err != nil {
		tb.Fatal(err)
	}
	return x
}

// turn applies one message. It then overwrites the input and output events, because the instance must not refer to
// them.
func turn(tb testing.TB, x *replay.Instance, inputs ...history.Event) []history.Event {
	tb.Helper()
	inputs = slices.Clone(inputs)
	buffer := damaged(make([]history.Event, 4))
	out, err := x.Turn(replay.Turn{
		Now: epoch, Version: "1", BuildID: "b", Inputs: [][]history.Event{inputs}, Buffer: buffer,
	})
	if err != nil {
		tb.Fatal(err)
	}
	events := slices.Clone(out.Events)
	damaged(inputs)
	damaged(out.Events)
	return events
}

// damaged overwrites events and returns them.
func damaged(events []history.Event) []history.Event {
	other := history.Event{
		ID: 1 << 40, Kind: history.ActivityFailed, SourceEventID: 1 << 39, Error: &history.Failure{Type: "spoiled"},
		Name: "spoiled", InstanceID: "spoiled", EventID: "spoiled",
		Inline: true, Reason: "spoiled", Message: "spoiled", Input: history.Payload(`"spoiled"`),
		Result: history.Payload(`"spoiled"`), Data: history.Payload(`"spoiled"`),
		Cancel: &history.CancelDetails{WaitForCancellation: true}, Retry: &history.RetryPolicy{MaxAttempts: 99},
		Tags: map[string]string{"spoiled": "spoiled"},
	}
	for i := range events {
		events[i] = other
	}
	return events
}

// record runs turns, one for each message, and returns the whole history.
func record(tb testing.TB, o replay.Orchestration, messages ...[]history.Event) []history.Event {
	tb.Helper()
	x := instance(tb, o)
	log := append([]history.Event{started}, turn(tb, x)...)
	for _, m := range messages {
		log = append(log, turn(tb, x, m...)...)
	}
	return log
}

func message(inputs ...history.Event) []history.Event { return inputs }

func done(id int64) history.Event {
	return history.Event{Kind: history.ActivityCompleted, SourceEventID: id, Result: history.Payload("2"), Attempt: 1}
}

func fired(id int64) history.Event {
	return history.Event{Kind: history.TimerFired, SourceEventID: id}
}

// kinds describes events without the fields that replay does not compare.
func kinds(events []history.Event) []string {
	var names []string
	for i := range events {
		names = append(names, events[i].String())
	}
	return names
}

func wantKinds(tb testing.TB, events []history.Event, want ...string) {
	tb.Helper()
	if got := kinds(events); !slices.Equal(got, want) {
		tb.Errorf("events\n got %q\nwant %q", got, want)
	}
}

func as[E error](tb testing.TB, err error) E {
	tb.Helper()
	var e E
	if !errors.As(err, &e) {
		tb.Fatalf("got error type %T, want %T: %v", err, e, err)
	}
	return e
}
