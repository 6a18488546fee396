package tasks_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/internal/replay/tasks"
)

func TestAwait_repeatedRaces_keepNoWaiters(t *testing.T) {
	t.Parallel()
	const races = 100
	var slow *tasks.Task
	x := replay.New(replay.Orchestration{Body: func(c *replay.Context, _ json.RawMessage) replay.Ending {
		slow = c.ScheduleActivity(replay.ActivityCall{Name: "slow"})
		for range races {
			c.AwaitAny([]*tasks.Task{slow, c.ScheduleActivity(replay.ActivityCall{Name: "quick"})})
		}
		return replay.Ending{Kind: history.OrchestrationCompleted}
	}}, replay.Options{})
	t.Cleanup(func() { x.Close() })
	if err := x.Replay([]history.Event{{ID: 1, Kind: history.OrchestrationStarted}}); err != nil {
		t.Fatal(err)
	}
	id := int64(4) // of "quick"
	for !x.Ended() {
		quick := history.Event{Kind: history.ActivityCompleted, SourceEventID: id}
		if _, err := x.Turn(replay.Turn{Inputs: [][]history.Event{{quick}}}); err != nil {
			t.Fatal(err)
		}
		if n := tasks.Waiters(slow); n > 1 {
			t.Fatalf("%d waiters", n)
		}
		id = x.LastEventID()
	}
}

// A long-running scope releases the memory of ended tasks and waits.
func TestScope_endedTasksAndWaits_areReleased(t *testing.T) {
	t.Parallel()
	const rounds = 100
	var member *tasks.Task
	x := replay.New(replay.Orchestration{Body: func(c *replay.Context, _ json.RawMessage) replay.Ending {
		s := c.WithCancel()
		for range rounds {
			u := s.WithCancel()
			timer := s.CreateTimer(time.Hour, "")
			g := s.Go(func() { s.Await(timer) })
			s.AwaitAny([]*tasks.Task{g, s.ScheduleActivity(replay.ActivityCall{Name: "a"})})
			s.Cancel("requested", "", timer)
			u.End("dropped_future")
			s.Await(g)
		}
		member = s.WaitForExternalEvent("e")
		s.Await(member)
		return replay.Ending{Kind: history.OrchestrationCompleted}
	}}, replay.Options{})
	t.Cleanup(func() { x.Close() })
	if err := x.Replay([]history.Event{{ID: 1, Kind: history.OrchestrationStarted}}); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Turn(replay.Turn{}); err != nil {
		t.Fatal(err)
	}
	for range rounds {
		a := history.Event{Kind: history.ActivityCompleted, SourceEventID: x.LastEventID()}
		if _, err := x.Turn(replay.Turn{Inputs: [][]history.Event{{a}}}); err != nil {
			t.Fatal(err)
		}
	}
	if scopes, kept, waiting := tasks.ScopeSize(member); scopes > 8 || kept > 8 || waiting != 1 {
		t.Errorf("%d scopes, %d tasks, %d waiting", scopes, kept, waiting)
	}
}
