package replay_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

func raisedNow(id string) history.Event {
	return history.Event{Kind: history.ExternalEventRaised, Name: "a", EventID: id, Data: history.Payload("1")}
}

// waitEnds runs a turn for each message, on a warm instance or on a new one for each turn, and returns the ended waits.
func waitEnds(t *testing.T, code replay.Orchestration, cold bool, messages ...[]history.Event) (ends []string) {
	t.Helper()
	asked := options
	asked.WaitEnds = true
	log := []history.Event{started}
	var x *replay.Instance
	for n, m := range append([][]history.Event{nil}, messages...) {
		if x == nil || cold {
			x = replay.New(code, asked)
			t.Cleanup(func() { x.Close() })
			if err := x.Replay(log); err != nil {
				t.Fatal(err)
			}
		}
		out, err := x.Turn(replay.Turn{
			Now: epoch.Add(time.Duration(n) * time.Minute), Version: "1", BuildID: "b", Inputs: [][]history.Event{m},
		})
		if err != nil {
			t.Fatal(err)
		}
		log = append(log, out.Events...)
		for _, w := range out.Waits {
			ends = append(ends, fmt.Sprintf("%d: %s #%d %s at %v", n, w.Name, w.ID, w.Reason, w.At.Sub(epoch)))
		}
	}
	return ends
}

// A wait ends once: when it receives its event, even if the event is returned later, or when it is cancelled.
func TestWaitForExternalEvent_receivedOrCancelled_endsOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code     func(c *replay.Context)
		messages [][]history.Event
		want     []string
	}{
		"received": {func(c *replay.Context) {
			c.Await(c.WaitForExternalEvent("a"))
			c.Await(c.WaitForExternalEvent("a"))
		}, [][]history.Event{message(raisedNow("1"), raisedNow("2"))}, []string{
			"1: a #3  at 1m0s", "1: a #6  at 1m0s",
		}},
		"it was there before": {func(c *replay.Context) {
			c.Await(activity(c, "x"))
			c.Await(c.WaitForExternalEvent("a"))
		}, [][]history.Event{message(raisedNow("1")), message(done(3))}, []string{"2: a #8  at 2m0s"}},
		"given up": {func(c *replay.Context) {
			w := c.WaitForExternalEvent("a")
			c.Await(activity(c, "x"))
			w.Cancel("requested", "")
			c.Await(activity(c, "y"))
		}, [][]history.Event{message(done(4)), message(raisedNow("1"))}, []string{"1: a #3 requested at 1m0s"}},
		"received and given up in one turn": {func(c *replay.Context) {
			w := c.WaitForExternalEvent("a")
			c.AwaitAny([]*replay.Task{activity(c, "x")})
			w.Cancel("select_loser", "")
			c.Await(activity(c, "y"))
		}, [][]history.Event{message(raisedNow("1"), done(4))}, []string{"1: a #3 select_loser at 1m0s"}},
		"received, and given up in a later turn": {func(c *replay.Context) {
			w := c.WaitForExternalEvent("a")
			c.AwaitAny([]*replay.Task{activity(c, "x")})
			w.Cancel("select_loser", "")
			c.Await(c.WaitForExternalEvent("a"))
			c.Await(activity(c, "y"))
		}, [][]history.Event{message(raisedNow("1")), message(done(4))}, []string{
			"1: a #3  at 1m0s", "2: a #9  at 2m0s",
		}},
		"the instance is cancelled": {
			func(c *replay.Context) {
				w := c.WaitForExternalEvent("a")
				c.Await(w)
			},
			[][]history.Event{message(history.Event{Kind: history.CancelRequested, Reason: "requested"})},
			[]string{"1: a #3 requested at 1m0s"},
		},
		"it is terminated": {func(c *replay.Context) {
			b := c.WaitForExternalEvent("b")
			c.Await(c.WaitForExternalEvent("a"))
			c.Await(b)
		}, [][]history.Event{message(history.Event{Kind: history.OrchestrationTerminated})}, []string{
			"1: b #3 orchestration_terminal_terminated at 1m0s", "1: a #4 orchestration_terminal_terminated at 1m0s",
		}},
		"execution has ended": {func(c *replay.Context) {
			c.WaitForExternalEvent("a")
		}, nil, []string{"0: a #3 orchestration_terminal_completed at 0s"}},
	} {
		for _, cold := range []bool{false, true} {
			if got := waitEnds(t, body(c.code), cold, c.messages...); !slices.Equal(got, c.want) {
				t.Errorf("%s, cold %v: %q, want %q", name, cold, got, c.want)
			}
		}
	}
}

// Without Options.WaitEnds, no ends are recorded.
func TestWaitEnds_notRequested_returnsNone(t *testing.T) {
	t.Parallel()
	x := instance(t, body(func(c *replay.Context) { c.WaitForExternalEvent("a") }))
	out, err := x.Turn(replay.Turn{Now: epoch, Version: "1", BuildID: "b"})
	if err != nil || !out.Ended || out.Waits != nil {
		t.Errorf("%+v, %v", out.Waits, err)
	}
}
