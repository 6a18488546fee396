package replay_test

import (
	"testing"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

func TestTurn_inputs_precedeTheirDecisions(t *testing.T) {
	t.Parallel()
	x := instance(t, body(func(c *replay.Context) {
		a, b := activity(c, "a"), activity(c, "b")
		c.Await(a)
		activity(c, "after-a")
		c.Await(b)
		activity(c, "after-b")
	}))
	wantKinds(t, turn(t, x), "TurnStarted #2", `ActivityScheduled #3 "a"`, `ActivityScheduled #4 "b"`)
	events := turn(t, x, done(3), done(4))
	wantKinds(t, events, "TurnStarted #5", "ActivityCompleted #6 of #3", `ActivityScheduled #7 "after-a"`,
		"ActivityCompleted #8 of #4", `ActivityScheduled #9 "after-b"`,
		"ActivityCancelRequested #10 (orchestration_terminal_completed)", "OrchestrationCompleted #11")
	if first := events[0]; first.Version != "1" || first.BuildID != "b" || !first.Time.Equal(epoch) {
		t.Errorf("TurnStarted: %+v", first)
	}
	if x.LastEventID() != 11 || !x.Ended() {
		t.Errorf("last event %d, ended %v", x.LastEventID(), x.Ended())
	}
}

func TestTurn_first_startsBeforeItsInputs(t *testing.T) {
	t.Parallel()
	x := instance(t, body(func(c *replay.Context) { c.Await(activity(c, "a")) }))
	wantKinds(t, turn(t, x, done(3)), "TurnStarted #2", `ActivityScheduled #3 "a"`, "ActivityCompleted #4 of #3",
		"OrchestrationCompleted #5")
}

func TestTurn_inputsThatDoNotApply_areDropped(t *testing.T) {
	t.Parallel()
	for name, input := range map[string]history.Event{
		"unknown task":           done(99),
		"not a task":             done(2),
		"outcome of other kind":  fired(3),
		"settled already":        done(4),
		"cancelled timer":        fired(7),
		"unknown kind of input":  {Kind: history.InputsParked},
		"a decision is no input": {Kind: history.ActivityScheduled, Name: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := instance(t, body(func(c *replay.Context) {
				a := activity(c, "a")
				c.Await(activity(c, "b"))
				c.CreateTimer(time.Hour, "").Cancel("requested", "")
				c.Await(a)
			}))
			turn(t, x)
			turn(t, x, done(4))
			before := x.LastEventID()
			if events := turn(t, x, input); len(events) > 0 || x.LastEventID() != before {
				t.Errorf("applied: %q", kinds(events))
			}
		})
	}
}

func TestTurn_outcomeOfCancelledActivity_isRecordedOnce(t *testing.T) {
	t.Parallel()
	var failure *history.Failure
	x := instance(t, body(func(c *replay.Context) {
		a := activity(c, "a")
		a.Cancel("requested", "not needed")
		c.Await(activity(c, "b"))
		failure = a.Failure()
	}))
	turn(t, x)
	wantKinds(t, turn(t, x, done(3)), "TurnStarted #6", "ActivityCompleted #7 of #3")
	wantKinds(t, turn(t, x, done(3)))
	turn(t, x, done(5))
	if failure == nil || failure.Type != history.TypeCancelled || failure.Reason != "requested" ||
		failure.Message != "not needed" {
		t.Errorf("the code observed %+v", failure)
	}
}

func TestTurn_outputFailed_settlesItsTask(t *testing.T) {
	t.Parallel()
	why := &history.Failure{Type: "payload_too_large", Message: "1 MiB"}
	var got *history.Failure
	x := instance(t, body(func(c *replay.Context) {
		timer := c.CreateTimer(time.Hour, "")
		c.Await(timer)
		got = timer.Failure()
	}))
	turn(t, x)
	turn(t, x, history.Event{Kind: history.OutputFailed, SourceEventID: 3, Error: why})
	if got != why || !x.Ended() {
		t.Errorf("the timer failed with %+v, ended %v", got, x.Ended())
	}
}

func TestTurn_messageEndsTheExecution_isTheLast(t *testing.T) {
	t.Parallel()
	x := instance(t, body(func(c *replay.Context) {
		a := activity(c, "a")
		activity(c, "b")
		c.Await(a)
	}))
	turn(t, x)
	out, err := x.Turn(replay.Turn{Now: epoch, Inputs: [][]history.Event{{done(99)}, {done(3), done(4)}, {done(4)}}})
	if err != nil {
		t.Fatal(err)
	}
	wantKinds(t, out.Events, "TurnStarted #5", "ActivityCompleted #6 of #3",
		"ActivityCancelRequested #7 of #4 (orchestration_terminal_completed)", "OrchestrationCompleted #8")
	if out.Consumed != 2 || !out.Ended {
		t.Errorf("consumed %d, ended %v", out.Consumed, out.Ended)
	}
	out, err = x.Turn(replay.Turn{Now: epoch, Inputs: [][]history.Event{{done(4)}}})
	if err != nil || len(out.Events) > 0 || out.Consumed != 1 || !out.Ended {
		t.Errorf("a turn after the end: %+v, %v", out, err)
	}
}

func TestTurn_time_neverDecreases(t *testing.T) {
	t.Parallel()
	var saw []time.Duration
	x := instance(t, body(func(c *replay.Context) {
		look := func() { saw = append(saw, c.Now().Sub(epoch)) }
		look()
		c.Await(activity(c, "a"))
		look()
		c.Await(c.CreateTimer(time.Hour, ""))
		look()
	}))
	at := func(d time.Duration, inputs ...history.Event) []history.Event {
		out, err := x.Turn(replay.Turn{Now: epoch.Add(d), Inputs: [][]history.Event{inputs}})
		if err != nil {
			t.Fatal(err)
		}
		return out.Events
	}
	at(time.Minute)
	at(0, done(3))                        // from a function with a slow clock
	events := at(2*time.Minute, fired(6)) // an hour too early
	want := []time.Duration{time.Minute, time.Minute, time.Hour + time.Minute}
	for i := range want {
		if saw[i] != want[i] {
			t.Errorf("observed %v, want %v", saw, want)
			break
		}
	}
	for i := range events {
		if got := events[i].Time.Sub(epoch); got != want[2] {
			t.Errorf("%s at %v", events[i].String(), got)
		}
	}
}

func TestTurn_withoutStart_isError(t *testing.T) {
	t.Parallel()
	x := replay.New(body(func(*replay.Context) {}), options)
	t.Cleanup(func() { x.Close() })
	if _, err := x.Turn(replay.Turn{Now: epoch}); err == nil {
		t.Error("a turn succeeded without OrchestrationStarted")
	}
}

func TestCancel_losersOfOneKind_shareOneEvent(t *testing.T) {
	t.Parallel()
	code := body(func(c *replay.Context) {
		a, b, t1, d, e := activity(c, "a"), activity(c, "b"), c.CreateTimer(time.Hour, ""), activity(c, "d"),
			activity(c, "e")
		won := []*replay.Task{e, a, b, t1, d}
		c.Cancel("select_loser", "", won[c.AwaitAny(won):]...)
	})
	log := record(t, code, message(done(7)))
	cancels := log[len(log)-4 : len(log)-1]
	wantKinds(t, cancels, "ActivityCancelRequested #10 (select_loser)", "TimerCancelled #11 of #5 (select_loser)",
		"ActivityCancelRequested #12 of #6 (select_loser)")
	if rs := cancels[0].SourceEventIDs; len(rs) != 1 || rs[0] != (history.Range{First: 3, Last: 4}) ||
		cancels[0].RequestedBy != history.RequestedByOrchestration {
		t.Errorf("%+v", cancels[0])
	}
	x := replay.New(code, options)
	t.Cleanup(func() { x.Close() })
	if err := x.Replay(log); err != nil {
		t.Error(err)
	}
	cancels[0].SourceEventIDs = []history.Range{{First: 3, Last: 3}}
	wantDivergence(t, code, log, 10, "ActivityCancelRequested of #3-#3 (select_loser)",
		"ActivityCancelRequested of #3-#4 (select_loser)")
}
