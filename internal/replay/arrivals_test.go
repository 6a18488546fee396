package replay_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

func inline(c *replay.Context, name string) *replay.Task {
	return c.ScheduleActivity(replay.ActivityCall{
		Name: name, Queue: "default", Input: json.RawMessage("1"), Inline: true,
	})
}

// arrived returns the outcomes of inline activities, numbered after the history.
func arrived(log []history.Event, ids ...int64) []history.Event {
	var events []history.Event
	for n, id := range ids {
		e := done(id)
		e.ID, e.Time, e.Inline = int64(len(log)+n+1), epoch, true
		events = append(events, e)
	}
	return events
}

// session runs the turns of an instance and stores its history.
type session struct {
	tb  testing.TB
	x   *replay.Instance
	log []history.Event
}

func newSession(tb testing.TB, o replay.Orchestration) *session {
	tb.Helper()
	return &session{tb: tb, x: instance(tb, o), log: []history.Event{started}}
}

// turn runs a turn that applies at most the given number of parked inputs. The outcomes of inline activities arrive
// afterwards.
func (s *session) turn(most int, message []history.Event, ids ...int64) {
	s.tb.Helper()
	out, err := s.x.Turn(replay.Turn{
		Now: epoch, Version: "1", BuildID: "b", Inputs: [][]history.Event{message}, MostParked: most,
	})
	if err != nil {
		s.tb.Fatal(err)
	}
	s.log = append(s.log, out.Events...)
	outcomes := arrived(s.log, ids...)
	s.x.Arrive(outcomes)
	s.log = append(s.log, outcomes...)
	if got := s.x.LastEventID(); got != int64(len(s.log)) {
		s.tb.Errorf("last event ID %d, the history has %d events", got, len(s.log))
	}
}

// replays replays the whole history on a new instance. It then replays the history in two parts, with a split after
// each event.
func (s *session) replays(o replay.Orchestration) {
	s.tb.Helper()
	if _, err := history.Concat(s.log); err != nil {
		s.tb.Error(err)
	}
	for n := range s.log {
		x := replay.New(o, options)
		err := x.Replay(s.log)
		x.Close()
		if err != nil {
			s.tb.Fatalf("replay of the whole history: %v", err)
		}
		x = replay.New(o, options)
		if err = x.Replay(s.log[:n+1]); err == nil && n+1 < len(s.log) && s.log[n+1].Kind == history.TurnStarted {
			err = x.Replay(s.log[n+1:])
		}
		x.Close()
		// the split is between a turn and its decisions
		if err != nil && !strings.Contains(err.Error(), "no further event") {
			s.tb.Fatalf("replay split after event #%d: %v", n+1, err)
		}
	}
}

func TestArrive_outcome_nextTurnStartsWithIt(t *testing.T) {
	t.Parallel()
	seen := 0
	o := body(func(c *replay.Context) {
		for range 3 {
			_ = c.Await(inline(c, "step"))
			seen++
		}
	})
	s := newSession(t, o)
	s.turn(0, nil, 3)
	if seen != 0 {
		t.Fatal("the code observed an outcome that is not in the history")
	}
	s.turn(0, nil, 6)
	if seen != 1 {
		t.Fatalf("the code observed %d outcomes, want 1", seen)
	}
	s.turn(0, nil, 9)
	s.turn(0, nil)
	wantKinds(t, s.log, "OrchestrationStarted #1 \"o\"",
		"TurnStarted #2", "ActivityScheduled #3 \"step\"", "ActivityCompleted #4 of #3",
		"TurnStarted #5", "ActivityScheduled #6 \"step\"", "ActivityCompleted #7 of #6",
		"TurnStarted #8", "ActivityScheduled #9 \"step\"", "ActivityCompleted #10 of #9",
		"TurnStarted #11", "OrchestrationCompleted #12")
	s.replays(o)
}

// Both activities of a race have ended when the code observes the first one. The other one is not cancelled, because
// its outcome is in the history.
func TestArrive_outcomesOfARace_loserIsNotCancelled(t *testing.T) {
	t.Parallel()
	var winner int
	var loser *replay.Task
	o := body(func(c *replay.Context) {
		a, b := inline(c, "a"), inline(c, "b")
		winner = c.AwaitAny([]*replay.Task{a, b})
		c.Cancel("select_loser", "", a, b)
		loser = a
		_ = c.Await(activity(c, "more"))
	})
	for _, most := range []int{0, 1} {
		s := newSession(t, o)
		s.turn(0, nil, 4, 3)
		s.turn(most, nil)
		if winner != 1 || most == 0 && (!loser.IsDone() || loser.IsCancelled()) {
			t.Errorf("winner %d, loser done %v, cancelled %v", winner, loser.IsDone(), loser.IsCancelled())
		}
		if slices.ContainsFunc(s.log, func(e history.Event) bool { return e.Kind == history.ActivityCancelRequested }) {
			t.Errorf("an ended activity was cancelled: %q", kinds(s.log))
		}
		if most > 0 && s.log[6].ParkedConsumed != 1 {
			t.Errorf("%s consumed %d parked inputs, want 1", s.log[6].String(), s.log[6].ParkedConsumed)
		}
		if open, _ := s.x.OpenActivity(3); open {
			t.Error("an activity is open after its outcome arrived")
		}
		s.turn(0, message(done(8)))
		s.replays(o)
	}
}

// Outcomes that have arrived are applied before parked inputs and messages. A limited turn applies only some of them.
func TestArrive_limitedTurn_takesPartOfTheOutcomes(t *testing.T) {
	t.Parallel()
	var order []int64
	o := body(func(c *replay.Context) {
		var tasks []*replay.Task
		for range 5 {
			tasks = append(tasks, inline(c, "step"))
		}
		for len(tasks) > 0 {
			i := c.AwaitAny(tasks)
			order = append(order, tasks[i].ID())
			tasks = slices.Delete(tasks, i, i+1)
		}
	})
	s := newSession(t, o)
	s.turn(0, nil, 5, 4, 3)
	s.turn(2, message(done(6)))
	if !slices.Equal(order, []int64{5, 4}) {
		t.Fatalf("seen %v", order)
	}
	s.turn(0, message(done(6)), 7)
	s.turn(0, nil)
	if !slices.Equal(order, []int64{5, 4, 3, 6, 7}) || s.log[len(s.log)-1].Kind != history.OrchestrationCompleted {
		t.Errorf("seen %v, %q", order, kinds(s.log))
	}
	s.replays(o)
}

// Outcomes that have arrived remain during a pause, and while a build cannot process them. If the execution ends
// without its code, their tasks are settled.
func TestArrive_pauseOrOtherBuild_outcomesRemain(t *testing.T) {
	t.Parallel()
	seen := 0
	o := body(func(c *replay.Context) {
		_ = c.Await(inline(c, "step"))
		seen++
	})
	s := newSession(t, o)
	s.turn(0, nil, 3)
	id := int64(len(s.log))
	s.log = append(s.log,
		history.Event{ID: id + 1, Kind: history.ExecutionSuspended, Time: epoch, EventID: "p-1"},
		history.Event{
			ID: id + 2, Kind: history.InputsParked, Time: epoch,
			Inputs: []history.Event{
				{Kind: history.ExternalEventRaised, Name: "e", EventID: "e-1", Data: history.Payload("1")},
			},
		},
		history.Event{ID: id + 3, Kind: history.ExecutionResumed, Time: epoch, EventID: "p-2"})
	state := history.NewState(history.TrackOpen, s.log...)
	if state.InlineOutcomes != 1 || state.Parked != 1 || !state.IsDue() || len(state.CancelOutstanding("")) != 0 {
		t.Errorf("%d inline outcomes, %d parked inputs, due %v, outstanding %v",
			state.InlineOutcomes, state.Parked, state.IsDue(), state.CancelOutstanding(""))
	}
	if paused := history.NewState(0, s.log[:id+2]...); paused.IsDue() {
		t.Error("a turn of a paused instance is due")
	}
	s.x = replay.New(o, options)
	defer s.x.Close()
	if err := s.x.Replay(s.log); err != nil || seen != 0 {
		t.Fatalf("%v, seen %d", err, seen)
	}
	s.turn(0, nil)
	if seen != 1 || s.log[len(s.log)-1].Kind != history.OrchestrationCompleted {
		t.Errorf("seen %d: %q", seen, kinds(s.log))
	}
	s.replays(o)
}

// An outcome that no task waits for is not in a history of this code.
func TestArrive_outcomeWithoutTask_isNondeterminism(t *testing.T) {
	t.Parallel()
	o := body(func(c *replay.Context) { _ = c.Await(inline(c, "step")) })
	s := newSession(t, o)
	s.turn(0, nil, 3)
	for _, wrong := range [][]history.Event{
		append(slices.Clone(s.log), arrived(s.log, 3)...),
		append(slices.Clone(s.log[:3]), arrived(s.log[:3], 2)...),
	} {
		x := replay.New(o, options)
		as[*replay.NondeterminismError](t, x.Replay(wrong))
		x.Close()
	}
}

// A coroutine continues after one of the tasks that it races, or after the last task that it awaits together.
func TestWakes_settledTasks(t *testing.T) {
	t.Parallel()
	of := func(ids ...int64) func(int64) bool { return func(id int64) bool { return slices.Contains(ids, id) } }
	two := func(await func(*replay.Context, []*replay.Task)) *replay.Instance {
		s := newSession(t, body(func(c *replay.Context) { await(c, []*replay.Task{inline(c, "a"), inline(c, "b")}) }))
		s.turn(0, nil)
		return s.x
	}
	all := two(func(c *replay.Context, ts []*replay.Task) { c.AwaitAll(ts) })
	some := two(func(c *replay.Context, ts []*replay.Task) { c.AwaitAny(ts) })
	if all.Wakes(of(3)) || all.Wakes(of(4)) || !all.Wakes(of(3, 4)) {
		t.Error("AwaitAll: not woken exactly by the last task")
	}
	if some.Wakes(of()) || !some.Wakes(of(3)) || !some.Wakes(of(4)) {
		t.Error("AwaitAny: not woken by the first task")
	}
	all.Arrive(arrived([]history.Event{started, {}, {}, {}}, 3))
	if _, err := all.Turn(replay.Turn{Now: epoch}); err != nil || all.Wakes(of()) || !all.Wakes(of(4)) {
		t.Errorf("AwaitAll with one outcome: not woken by the other task, error %v", err)
	}
}
