package providertest

import (
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Timers are held until they are nearly due, or for the maximum delay.
func timers() group {
	return group{"timers", []testCase{
		{name: "ATurnsTimersAreHeld", run: turnsTimers},
		{name: "ATimerIsWhatWasCreated", run: timerFields},
		{name: "HeldUntilNearlyDue", run: heldUntilDue},
		{name: "OneThatIsDueIsNotHeld", run: dueAtOnce},
		{name: "ALongOneIsSeenAgainInTime", run: longTimers, needs: []Capability{VirtualTime}},
		{name: "ManyAtOnce", run: manyTimers},
		{name: "OfTwoHeldLaterTheOneThatIsWaitedForIsSeen", run: heldLater, needs: []Capability{VirtualTime}},
	}}
}

func timerDue(n int64, due time.Time) provider.Timer {
	return provider.Timer{V: provider.WireVersion, InstanceID: "a", ExecutionID: "x", Segment: 1, TimerID: n, FireAt: due}
}

func turnsTimers(f *fixture) {
	e := f.start("a")
	e.commit(turnStarted(), timer(f.now()), timer(f.now().Add(time.Hour)))
	if ts := f.timers(); len(ts) != 1 || ts[0].TimerID != 3 {
		f.t.Errorf("visible immediately: %s, want timer 3", text(ts))
	}
}

func timerFields(f *fixture) {
	e := f.start("a")
	due := f.now().Add(-time.Second)
	e.commit(turnStarted())
	e.commit(timer(due))
	ts := f.timers()
	if len(ts) != 1 {
		f.t.Fatalf("%d timers, want 1", len(ts))
	}
	f.wantEqual("timer", ts[0].Timer, provider.Timer{V: provider.WireVersion, InstanceID: "a", ExecutionID: e.instance.ExecutionID, Segment: 2, TimerID: 3, FireAt: due})
}

func heldUntilDue(f *fixture) {
	due := f.now().Add(3900 * time.Millisecond)
	f.must(f.p.HoldTimers(f.ctx(), timerDue(3, due)))
	for range 2 {
		if ts := f.timers(); len(ts) > 0 {
			f.t.Errorf("timer received %v too early", due.Sub(f.Now()))
		}
		f.Advance(time.Second)
	}
	f.Advance(due.Sub(f.Now()))
	if ts := f.dueTimers(); len(ts) != 1 {
		f.t.Errorf("%d timers at the due time, want 1", len(ts))
	}
}

func dueAtOnce(f *fixture) {
	now := f.now()
	f.must(f.p.HoldTimers(f.ctx(), timerDue(3, now), timerDue(4, now.Add(-100*365*24*time.Hour)), timerDue(5, now.Add(900*time.Millisecond))))
	if ts := f.timers(); len(ts) != 3 {
		f.t.Errorf("%d timers immediately, want 3: the last is due in less than a second", len(ts))
	}
}

// longTimers are held again each time they are received before they are due.
func longTimers(f *fixture) {
	start := f.now()
	dues := map[int64]time.Time{
		3: start.Add(15*time.Minute + time.Second), 4: start.Add(17*time.Minute + 300*time.Millisecond), 5: start.Add(3 * time.Hour), 6: start.Add(50 * time.Hour),
	}
	for n, due := range dues {
		f.must(f.p.HoldTimers(f.ctx(), timerDue(n, due)))
	}
	f.must(f.p.HoldTimers(f.ctx(), timerDue(7, start.Add(10*365*24*time.Hour)))) // it is not due here
	f.Advance(10 * time.Minute)
	if ts := f.timers(); len(ts) > 0 {
		f.t.Errorf("after 10 minutes: %s", text(ts))
	}
	for len(dues) > 0 {
		f.Advance(time.Second)
		for _, t := range f.timers() {
			f.must(f.p.DeleteRecords(f.ctx(), provider.QueueTimers, t.Record))
			if f.Now().Before(t.FireAt) {
				f.must(f.p.HoldTimers(f.ctx(), t.Timer))
			} else {
				delete(dues, t.TimerID)
			}
		}
		for n, due := range dues {
			if late := f.Now().Sub(due); late > 2*time.Second {
				f.t.Fatalf("timer %d was not received %v after it was due", n, late)
			}
		}
	}
}

func manyTimers(f *fixture) {
	var events []history.Event
	for range 33 {
		events = append(events, timer(f.now()))
	}
	f.start("a").commit(events...)
	seen := map[int64]bool{}
	for _, t := range f.timers() {
		seen[t.TimerID] = true
	}
	if len(seen) != 33 {
		f.t.Errorf("%d timers, want 33", len(seen))
	}
}
