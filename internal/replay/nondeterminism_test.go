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

// race is the code of the following histories: the first of two activities wins, and a timer limits the wait.
func race(c *replay.Context) {
	tasks := []*replay.Task{activity(c, "a"), activity(c, "b"), c.CreateTimer(time.Hour, "")}
	c.AwaitAny(tasks)
	c.Cancel("select_loser", "", tasks...)
	c.Await(activity(c, "ship"))
}

// raceHistory returns the history of race if "a" completes first:
//
//	1 OrchestrationStarted, 2 TurnStarted, 3 ActivityScheduled a, 4 ActivityScheduled b, 5 TimerCreated,
//	6 TurnStarted, 7 ActivityCompleted of 3, 8 ActivityCancelRequested of 4, 9 TimerCancelled of 5,
//	10 ActivityScheduled ship, 11 TurnStarted, 12 ActivityCompleted of 10, 13 OrchestrationCompleted
func raceHistory(t *testing.T) []history.Event {
	t.Helper()
	return record(t, body(race), message(done(3)), message(done(10)))
}

func TestReplay_sameCodeInParts_matches(t *testing.T) {
	t.Parallel()
	log := raceHistory(t)
	for n := range log {
		if log[n].Kind != history.TurnStarted {
			continue
		}
		x := replay.New(body(race), options)
		t.Cleanup(func() { x.Close() })
		if err := errors.Join(x.Replay(log[:n]), x.Replay(log[n:])); err != nil || !x.Ended() {
			t.Errorf("replay split before event #%d: ended %v, error %v", log[n].ID, x.Ended(), err)
		}
	}
}

// The cases are all ways in which code and history can differ.
func TestReplay_otherDecision_isNondeterminism(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name          string
		code          func(*replay.Context)
		eventID       int64
		expected, got string
	}{
		{
			"another activity", func(c *replay.Context) { activity(c, "x") },
			3, `ActivityScheduled "a"`, `ActivityScheduled "x"`,
		},
		{
			"another kind", func(c *replay.Context) { c.CreateTimer(time.Second, "") },
			3, `ActivityScheduled "a"`, "TimerCreated",
		},
		{
			"missing activity", func(c *replay.Context) { c.Await(activity(c, "a")) },
			4, `ActivityScheduled "b"`, `nothing and waits for ActivityScheduled "a" #3`,
		},
		{
			"additional decision before an input", func(c *replay.Context) {
				activity(c, "a")
				activity(c, "b")
				c.CreateTimer(time.Hour, "")
				activity(c, "audit")
			},
			6, "no further decision before TurnStarted", `ActivityScheduled "audit"`,
		},
		{
			"ends too early", func(c *replay.Context) { activity(c, "a") },
			4, `ActivityScheduled "b"`, "OrchestrationCompleted",
		},
		{
			"another winner", func(c *replay.Context) {
				tasks := []*replay.Task{activity(c, "a"), activity(c, "b"), c.CreateTimer(time.Hour, "")}
				c.AwaitAny(tasks)
				c.Cancel("select_loser", "", tasks[2], tasks[1])
			},
			8, "ActivityCancelRequested of #4 (select_loser)", "TimerCancelled of #5 (select_loser)",
		},
		{
			"the loser is awaited now", func(c *replay.Context) {
				tasks := []*replay.Task{activity(c, "a"), activity(c, "b"), c.CreateTimer(time.Hour, "")}
				c.AwaitAny(tasks)
				c.AwaitAny(tasks[1:])
			},
			8, "ActivityCancelRequested of #4 (select_loser)",
			`nothing and waits for ActivityScheduled "b" #4, TimerCreated #5`,
		},
		{
			"another reason", func(c *replay.Context) {
				tasks := []*replay.Task{activity(c, "a"), activity(c, "b"), c.CreateTimer(time.Hour, "")}
				c.AwaitAny(tasks)
				tasks[1].Cancel("requested", "")
			},
			8, "ActivityCancelRequested of #4 (select_loser)", "ActivityCancelRequested of #4 (requested)",
		},
		{
			"waits instead of the end", func(c *replay.Context) { race(c); c.Await(activity(c, "bill")) },
			13, "OrchestrationCompleted", `ActivityScheduled "bill"`,
		},
		{
			"panics instead of the next decision", func(*replay.Context) { panic("new bug") },
			3, `ActivityScheduled "a"`, "OrchestrationFailed",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			wantDivergence(t, body(tt.code), raceHistory(t), tt.eventID, tt.expected, tt.got)
		})
	}
}

func wantDivergence(t *testing.T, code replay.Orchestration, log []history.Event, eventID int64, expected, got string) {
	t.Helper()
	x := replay.New(code, options)
	t.Cleanup(func() { x.Close() })
	e := as[*replay.NondeterminismError](t, x.Replay(log))
	want := replay.NondeterminismError{
		InstanceID: "order-17", ExecutionID: "01JEXECUTION", EventID: eventID, Expected: expected, Got: got,
	}
	if *e != want {
		t.Errorf("\n got %+v\nwant %+v", *e, want)
	}
	if _, err := x.Turn(replay.Turn{Now: epoch}); err == nil {
		t.Error("a turn succeeded after a nondeterminism error")
	}
}

func TestNondeterminismError_historyEnds_mentionsTheEnd(t *testing.T) {
	t.Parallel()
	log := raceHistory(t)
	wantDivergence(t, body(func(c *replay.Context) {
		activity(c, "a")
		activity(c, "b")
		c.CreateTimer(1, "")
		activity(c, "c")
	}),
		log[:5], 5, "no further event", `ActivityScheduled "c"`)
}

func TestReplay_eventsAfterTheEnd_isNondeterminism(t *testing.T) {
	t.Parallel()
	log := raceHistory(t)
	more := log[len(log)-1]
	more.ID, more.Kind = 14, history.TurnStarted
	wantDivergence(t, body(race), append(log, more), 14, "no further decision before TurnStarted",
		"nothing and has ended")
}

func TestReplay_additionalCancel_isNondeterminism(t *testing.T) {
	t.Parallel()
	log := slices.Clone(raceHistory(t))
	log[7].SourceEventID, log[7].SourceEventIDs = 0, []history.Range{{First: 3, Last: 4}}
	wantDivergence(t, body(race), log, 8, "ActivityCancelRequested of #3-#4 (select_loser)",
		"ActivityCancelRequested of #4 (select_loser)")
}

func TestReplay_cancelOfOtherTask_isNondeterminism(t *testing.T) {
	t.Parallel()
	log := slices.Clone(raceHistory(t))
	log[7].SourceEventID = 3
	wantDivergence(t, body(race), log, 8, "ActivityCancelRequested of #3 (select_loser)",
		"ActivityCancelRequested of #4 (select_loser)")
}

// The request of a client is an input, not a decision of the code.
func TestReplay_cancelByClient_isNoDecision(t *testing.T) {
	t.Parallel()
	log := slices.Clone(raceHistory(t))
	log[7].RequestedBy = history.RequestedByClient
	wantDivergence(t, body(race), log, 8, "no further decision before ActivityCancelRequested of #4 (select_loser)",
		"ActivityCancelRequested of #4 (select_loser)")
}

func TestReplay_outcomeWithoutTask_isNondeterminism(t *testing.T) {
	t.Parallel()
	log := slices.Clone(raceHistory(t))
	log[6].Kind = history.TimerFired
	wantDivergence(t, body(race), log, 7, "no further decision before TimerFired of #3", "no task with this outcome")
}

func TestReplay_failureInsteadOfCompletion_isNondeterminism(t *testing.T) {
	t.Parallel()
	log := record(t, body(func(*replay.Context) {}))
	wantDivergence(t, body(func(*replay.Context) {
		panic("x")
	}), log, 3, "OrchestrationCompleted", "OrchestrationFailed")
}

func TestReplay_changedArguments_match(t *testing.T) {
	t.Parallel()
	var fireAt time.Time
	code := func(input string, d time.Duration) replay.Orchestration {
		return body(func(c *replay.Context) {
			c.Await(c.ScheduleActivity(replay.ActivityCall{
				Name: "a", Queue: input, Input: json.RawMessage(input), StartToClose: d,
			}))
			timer := c.CreateTimer(d, "")
			fireAt = timer.FireAt()
			c.Await(timer)
		})
	}
	log := record(t, code("1", time.Hour), message(done(3)))
	x := replay.New(code("2", time.Minute), options)
	t.Cleanup(func() { x.Close() })
	if err := x.Replay(log); err != nil {
		t.Fatal(err)
	}
	if got := fireAt.Sub(epoch); got != time.Hour {
		t.Errorf("due time of the timer: got %v, want the recorded time", got)
	}
}
