package replay_test

import (
	"testing"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

func raise(name, id, data string) history.Event {
	return history.Event{Kind: history.ExternalEventRaised, Name: name, EventID: id, Data: history.Payload(data)}
}

func TestStart_carriedEvents_areAvailable(t *testing.T) {
	t.Parallel()
	var got []string
	code := body(func(c *replay.Context) {
		got = nil
		for range 3 {
			e := c.WaitForExternalEvent("e")
			c.Await(e)
			got = append(got, string(e.TakeResult()))
		}
	})
	first := started
	first.CarriedEvents = []history.CarriedEvent{
		{Name: "e", EventID: "2", Data: history.Payload("2")}, {Name: "e", Data: history.Payload("3")},
	}
	first.EventIDs = []string{"1", "2"}
	x := replay.New(code, options)
	t.Cleanup(func() { x.Close() })
	if err := x.Replay([]history.Event{first}); err != nil {
		t.Fatal(err)
	}
	log := append([]history.Event{first}, turn(t, x, raise("e", "1", "0"), raise("e", "2", "0"))...)
	wantKinds(t, log[1:], "TurnStarted #2", `ExternalEventSubscribed #3 "e"`, `ExternalEventSubscribed #4 "e"`,
		`ExternalEventSubscribed #5 "e"`)
	log = append(log, turn(t, x, raise("e", "4", "4"))...)
	y := replay.New(code, options)
	t.Cleanup(func() { y.Close() })
	if err := y.Replay(log); err != nil || !y.Ended() || len(got) != 3 || got[0]+got[1]+got[2] != "234" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestTerminate_beforeStart_codeNeverRuns(t *testing.T) {
	t.Parallel()
	code := body(func(*replay.Context) { t.Error("the code ran") })
	x := instance(t, code)
	out, err := x.Turn(replay.Turn{
		Now: epoch,
		Inputs: [][]history.Event{
			{raise("e", "1", "1")}, {{Kind: history.OrchestrationTerminated}}, {raise("e", "2", "1")},
		},
	})
	if err != nil || !out.Ended || out.Consumed != 2 {
		t.Errorf("%+v, %v", out, err)
	}
	wantKinds(t, out.Events, "TurnStarted #2", `ExternalEventRaised #3 "e"`, "OrchestrationTerminated #4")
	y := replay.New(code, options)
	t.Cleanup(func() { y.Close() })
	if err := y.Replay(append([]history.Event{started}, out.Events...)); err != nil || !y.Ended() {
		t.Errorf("replay: %v", err)
	}
}

func TestTerminate_whileWaiting_replays(t *testing.T) {
	t.Parallel()
	code := body(race)
	log := record(t, code, message(done(3)), message(history.Event{Kind: history.OrchestrationTerminated}))
	x := replay.New(code, options)
	t.Cleanup(func() { x.Close() })
	if err := x.Replay(log); err != nil || !x.Ended() {
		t.Errorf("ended %v, %v", x.Ended(), err)
	}
	wantKinds(t, turn(t, x, done(10)))
}

func TestBytes_bufferedEvents_areCounted(t *testing.T) {
	t.Parallel()
	x := instance(t, body(func(c *replay.Context) { c.Await(activity(c, "a")) }))
	turn(t, x)
	before := x.Bytes()
	big := make([]byte, 100<<10)
	for i := range big {
		big[i] = '1'
	}
	turn(t, x, raise("e", "1", string(big)))
	if got := x.Bytes() - before; got < len(big) {
		t.Errorf("%d more bytes, want at least the size of the event", got)
	}
}

// A termination ends the instance as terminated even if a cancel arrived just before it. Both may arrive in the same
// batch, before the code started, or before the start time.
func TestTerminate_withCancelInFirstTurn_isTerminated(t *testing.T) {
	t.Parallel()
	for name, startAt := range map[string]time.Time{"at once": {}, "before its start time": epoch.Add(time.Hour)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code := body(func(*replay.Context) { t.Error("the code ran") })
			first := started
			if !startAt.IsZero() {
				first.StartAt = &startAt
			}
			x := replay.New(code, options)
			t.Cleanup(func() { x.Close() })
			if err := x.Replay([]history.Event{first}); err != nil {
				t.Fatal(err)
			}
			out, err := x.Turn(replay.Turn{Now: epoch, Inputs: [][]history.Event{
				{cancelRequested("requested", "first")},
				{cancelRequested("requested", "again")},
				{{Kind: history.OrchestrationTerminated}},
				{raise("e", "2", "1")},
			}})
			if err != nil || !out.Ended || out.Consumed != 3 {
				t.Errorf("%+v, %v", out, err)
			}
			wantKinds(t, out.Events, "TurnStarted #2", "CancelRequested #3 (requested)", "OrchestrationTerminated #4")
			if y := reload(t, code, append([]history.Event{first}, out.Events...)); !y.Ended() {
				t.Error("the execution has not ended after its replay")
			}
		})
	}
}
