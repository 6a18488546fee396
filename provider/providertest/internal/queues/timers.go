package queues

import (
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// Timers tests that timers are held until they are nearly due, or for the maximum delay.
func Timers() kit.Group {
	return kit.Group{Name: "timers", Cases: []kit.Case{
		{Name: "ATurnsTimersAreHeld", Run: turnsTimers},
		{Name: "ATimerIsWhatWasCreated", Run: timerFields},
		{Name: "HeldUntilNearlyDue", Run: heldUntilDue},
		{Name: "OneThatIsDueIsNotHeld", Run: dueAtOnce},
		{Name: "ALongOneIsSeenAgainInTime", Run: longTimers, Needs: []kit.Capability{kit.VirtualTime}},
		{Name: "ManyAtOnce", Run: manyTimers},
		{Name: "OfTwoHeldLaterTheOneThatIsWaitedForIsSeen", Run: heldLater, Needs: []kit.Capability{kit.VirtualTime}},
	}}
}

func turnsTimers(f *kit.Fixture) {
	e := f.Start("a")
	e.Commit(kit.TurnStarted(), kit.Timer(f.StoredNow()), kit.Timer(f.StoredNow().Add(time.Hour)))
	if ts := f.Timers(); len(ts) != 1 || ts[0].TimerID != 3 {
		f.T.Errorf("visible immediately: %s, want timer 3", kit.Text(ts))
	}
}

func timerFields(f *kit.Fixture) {
	e := f.Start("a")
	due := f.StoredNow().Add(-time.Second)
	e.Commit(kit.TurnStarted())
	e.Commit(kit.Timer(due))
	ts := f.Timers()
	if len(ts) != 1 {
		f.T.Fatalf("%d timers, want 1", len(ts))
	}
	f.WantEqual("timer", ts[0].Timer, provider.Timer{
		V: provider.WireVersion, InstanceID: "a", ExecutionID: e.Instance.ExecutionID, Segment: 2, TimerID: 3,
		FireAt: due,
	})
}

func heldUntilDue(f *kit.Fixture) {
	due := f.StoredNow().Add(3900 * time.Millisecond)
	f.Must(f.Provider.HoldTimers(f.Ctx(), kit.TimerDue(3, due)))
	for range 2 {
		if ts := f.Timers(); len(ts) > 0 {
			f.T.Errorf("timer received %v too early", due.Sub(f.Now()))
		}
		f.Advance(time.Second)
	}
	f.Advance(due.Sub(f.Now()))
	if ts := f.DueTimers(); len(ts) != 1 {
		f.T.Errorf("%d timers at the due time, want 1", len(ts))
	}
}

func dueAtOnce(f *kit.Fixture) {
	now := f.StoredNow()
	f.Must(f.Provider.HoldTimers(f.Ctx(), kit.TimerDue(3, now), kit.TimerDue(4, now.Add(-100*365*24*time.Hour)),
		kit.TimerDue(5, now.Add(900*time.Millisecond))))
	if ts := f.Timers(); len(ts) != 3 {
		f.T.Errorf("%d timers immediately, want 3: the last is due in less than a second", len(ts))
	}
}

// longTimers checks timers that are held again each time they are received before they are due.
func longTimers(f *kit.Fixture) {
	start := f.StoredNow()
	dues := map[int64]time.Time{
		3: start.Add(15*time.Minute + time.Second), 4: start.Add(17*time.Minute + 300*time.Millisecond),
		5: start.Add(3 * time.Hour), 6: start.Add(50 * time.Hour),
	}
	for n, due := range dues {
		f.Must(f.Provider.HoldTimers(f.Ctx(), kit.TimerDue(n, due)))
	}
	f.Must(f.Provider.HoldTimers(f.Ctx(), kit.TimerDue(7, start.Add(10*365*24*time.Hour)))) // not due during the test
	f.Advance(10 * time.Minute)
	if ts := f.Timers(); len(ts) > 0 {
		f.T.Errorf("after 10 minutes: %s", kit.Text(ts))
	}
	for len(dues) > 0 {
		f.Advance(time.Second)
		for _, t := range f.Timers() {
			f.Must(f.Provider.DeleteRecords(f.Ctx(), provider.QueueTimers, t.Record))
			if f.Now().Before(t.FireAt) {
				f.Must(f.Provider.HoldTimers(f.Ctx(), t.Timer))
			} else {
				delete(dues, t.TimerID)
			}
		}
		for n, due := range dues {
			if late := f.Now().Sub(due); late > 2*time.Second {
				f.T.Fatalf("timer %d was not received %v after it was due", n, late)
			}
		}
	}
}

func manyTimers(f *kit.Fixture) {
	var events []history.Event
	for range 33 {
		events = append(events, kit.Timer(f.StoredNow()))
	}
	f.Start("a").Commit(events...)
	seen := map[int64]bool{}
	for _, t := range f.Timers() {
		seen[t.TimerID] = true
	}
	if len(seen) != 33 {
		f.T.Errorf("%d timers, want 33", len(seen))
	}
}
