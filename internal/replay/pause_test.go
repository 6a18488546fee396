package replay_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

// then returns a history with additional events, which it numbers.
func then(log []history.Event, events ...history.Event) []history.Event {
	log = slices.Clip(log)
	for _, e := range events {
		e.ID, e.Time = int64(len(log))+1, epoch
		log = append(log, e)
	}
	return log
}

func suspended(id string) history.Event {
	return history.Event{Kind: history.ExecutionSuspended, EventID: history.PauseIDPrefix + id}
}

func resumed() history.Event {
	return history.Event{Kind: history.ExecutionResumed, EventID: history.PauseIDPrefix + "2"}
}

// A pause has no effect on replay. The turn after the resume takes the inputs that were parked during the pause. The
// next execution has the IDs of the requests.
func TestReplay_historyWithPause_continuesAfterResume(t *testing.T) {
	t.Parallel()
	code := replay.Orchestration{
		Name: "o", Version: "1",
		Body: func(c *replay.Context, _ json.RawMessage) replay.Ending {
			c.Await(activity(c, "a"))
			c.Await(activity(c, "b"))
			return replay.Ending{Kind: history.OrchestrationContinuedAsNew}
		},
	}
	log := record(t, code)
	log = then(log, suspended("1"), history.Event{Kind: history.InputsParked, Inputs: []history.Event{done(3)}},
		resumed())
	x := replay.New(code, options)
	t.Cleanup(func() { x.Close() })
	if err := x.Replay(log); err != nil {
		t.Fatal(err)
	}
	events := turn(t, x)
	wantKinds(t, events, "TurnStarted #7", "ActivityCompleted #8 of #3", `ActivityScheduled #9 "b"`)

	again := replay.New(code, options)
	t.Cleanup(func() { again.Close() })
	if err := again.Replay(append(log, events...)); err != nil {
		t.Fatal(err)
	}
	out, err := again.Turn(replay.Turn{Now: epoch, Inputs: [][]history.Event{{done(9)}}})
	if err != nil || out.Continued == nil {
		t.Fatalf("%+v, %v", out, err)
	}
	if ids := out.Continued.EventIDs; len(ids) != 2 || ids[0] != history.PauseIDPrefix+"1" ||
		ids[1] != history.PauseIDPrefix+"2" {
		t.Errorf("event IDs of the next execution: %q", ids)
	}
}

// An instance is terminated while it is paused, while it is blocked after a pause, or before its code started. The code
// does not run.
func TestReplay_pausedInstanceEnds_matches(t *testing.T) {
	t.Parallel()
	code := body(func(c *replay.Context) {
		activity(c, "a")
		c.CreateTimer(time.Hour, "")
		c.Await(activity(c, "b"))
	})
	ran := record(t, code)
	end := []history.Event{
		{
			Kind:           history.ActivityCancelRequested,
			SourceEventIDs: []history.Range{{First: 3, Last: 3}, {First: 5, Last: 5}},
			Reason:         "orchestration_terminal_terminated", RequestedBy: history.RequestedByEngine,
		},
		{Kind: history.TimerCancelled, SourceEventID: 4, Reason: "orchestration_terminal_terminated"},
		{Kind: history.OrchestrationTerminated},
	}
	for name, log := range map[string][]history.Event{
		"paused": then(then(ran, suspended("1")), end...),
		"paused, with inputs": then(then(ran, suspended("1"),
			history.Event{Kind: history.InputsParked, Inputs: []history.Event{fired(4)}}), end[0], end[2]),
		"blocked, then paused": then(then(ran,
			history.Event{
				Kind: history.InputsParked, BuildID: "b", Error: &history.Failure{Type: "T"},
				Inputs: []history.Event{fired(4)},
			}, suspended("1"), resumed()), end[0], end[2]),
		"resumed, then blocked": then(then(ran, suspended("1"), resumed()), end...),
		"before the start": then(then([]history.Event{started}, suspended("1")),
			history.Event{Kind: history.OrchestrationTerminated}),
		"before the start, paused twice": then(then([]history.Event{started}, suspended("1"), resumed(), suspended("3")),
			history.Event{Kind: history.OrchestrationTerminated}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := replay.New(code, options)
			t.Cleanup(func() { x.Close() })
			if err := x.Replay(log); err != nil || !x.Ended() {
				t.Errorf("ended: %t, %v", x.Ended(), err)
			}
		})
	}
}

// Code that makes more decisions than the history records before a pause does not match the history.
func TestReplay_differenceBeforeAPause_isNondeterminism(t *testing.T) {
	t.Parallel()
	log := then(record(t, body(func(c *replay.Context) { c.Await(activity(c, "a")) })), suspended("1"))
	more := body(func(c *replay.Context) {
		a := activity(c, "a")
		activity(c, "b")
		c.Await(a)
	})
	x := replay.New(more, options)
	t.Cleanup(func() { x.Close() })
	if e := as[*replay.NondeterminismError](t, x.Replay(log)); e.EventID != 4 {
		t.Error(e)
	}
}
