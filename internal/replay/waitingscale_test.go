package replay_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

// width returns the number of tasks that are open at a time. The result is the capacity of a slice that grew by
// appending, so the next append reallocates the slice.
func width(least int) int {
	var l []*replay.Task
	for len(l) < least || len(l) < cap(l) {
		l = append(l, nil)
	}
	return len(l)
}

// A job has 100,000 activities, each with a scope, of which 20,000 are open at a time. An activity must not search all
// outstanding tasks, or a cold replay would exceed the time limit of a turn.
func TestReplay_manyOpenScopes_finishesWithinTurnLimit(t *testing.T) {
	t.Parallel()
	const jobs = 100_000
	wide := width(20_000)
	o := body(func(c *replay.Context) {
		c = c.WithCancel()
		var open []*replay.Task
		var scopes []*replay.Context
		begin := func() { open, scopes = append(open, waited(c, "a")), append(scopes, c.WithCancel()) }
		for range wide {
			begin()
		}
		for range jobs - wide {
			_ = c.Await(open[0])
			scopes[0].End("done")
			open, scopes = open[1:], scopes[1:]
			begin()
		}
		_ = c.AwaitAll(open)
	})
	x := instance(t, o)
	log := append([]history.Event{started}, turn(t, x)...)
	for at := 0; !x.Ended(); {
		var ends []history.Event
		for ; at < len(log) && len(ends) < 1000; at++ {
			if log[at].Kind == history.ActivityScheduled {
				ends = append(ends, done(log[at].ID))
			}
		}
		log = append(log, turn(t, x, ends...)...)
	}
	withLimit := options
	// enough for the race detector on a busy machine; a search of all tasks takes longer even without it
	withLimit.TurnTimeout = 20 * time.Second
	y := replay.New(o, withLimit)
	defer y.Close()
	if err := y.Replay(log); err != nil || !y.Ended() {
		t.Errorf("got error %v, ended %v", err, y.Ended())
	}
}

// 50,000 compensations in the scope that is never cancelled must not search the calls of that scope that continue.
func TestAwaitEnds_manyCallsWithoutCancel_waitsOnlyForCancelledCall(t *testing.T) {
	t.Parallel()
	const many = 50_000
	o := body(func(c *replay.Context) {
		safe := c.WithoutCancel()
		var all []*replay.Task
		for range many {
			all = append(all, waited(safe, "a"))
		}
		for range many {
			safe.AwaitEnds("dropped_future")
		}
		all[7].Cancel("requested", "")
		safe.AwaitEnds("dropped_future")
	})
	x := instance(t, o)
	turn(t, x)
	if x.Ended() {
		t.Error("the execution ended before the cancelled call")
	}
	if turn(t, x, done(10)); !x.Ended() {
		t.Error("the execution waits for calls that are not cancelled")
	}
}

func waited(c *replay.Context, name string) *replay.Task {
	return c.ScheduleActivity(replay.ActivityCall{
		Name: name, Queue: "default", Input: json.RawMessage("1"), WaitCancel: true,
	})
}
