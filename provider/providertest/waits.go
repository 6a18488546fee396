package providertest

import (
	"errors"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// The end of an activity is heard that is waited for when it is cancelled, and it is the end of all that runs of it (R23).
func waits() group {
	return group{"waits", []testCase{
		{name: "OneDeliveryAtATimeHasTheRun", run: oneRun},
		{name: "ARunThatHasRunOutGoesOver", run: runGoesOver},
		{name: "ARunIsPutBackForWhoHadItBefore", run: runPutBack},
		{name: "WhatARunHasComeToIsKeptForItsAttempt", run: runEnded},
		{name: "WhoTakesARunSeesTheCancel", run: runSeesCancel},
		{name: "ARunOfADeletedExecutionLeavesNothing", run: runOfDeleted},
		{name: "TheTurnTellsTheEndOfWhatWaitsForItsNextAttempt", run: turnTellsEnd},
		{name: "ACancelDoesNotSettleWhatIsWaitedFor", run: cancelLeavesUnsettled},
	}}
}

// awaited is an execution that has scheduled an activity, #3, that is waited for when it is cancelled.
func (f *fixture) awaited(id string) *execution {
	f.t.Helper()
	e := f.quiet(id)
	a := activity(Queue)
	a.Retry, a.Cancel = &history.RetryPolicy{InitialIntervalMs: 1000}, &history.CancelNote{Wait: true}
	e.commit(turnStarted(), a)
	f.work(Queue)
	return e
}

func (e *execution) run(token string, attempt int, lasts time.Duration) provider.Run {
	return provider.Run{ExecutionID: e.instance.ExecutionID, ActivityID: 3, Attempt: attempt, Token: token, Until: e.f.now().Add(lasts)}
}

// wantTaken fails unless a run is taken, or not, from who had it before; "": nobody.
func (e *execution) wantTaken(r provider.Run, held bool, before string) provider.Taken {
	e.f.t.Helper()
	taken, err := e.f.p.TakeRun(e.f.ctx(), r)
	e.f.must(err)
	had := ""
	if taken.Before != nil {
		had = taken.Before.Token
	}
	if taken.Held != held || had != before {
		e.f.t.Errorf("run %s: held %v, before %q; want %v, %q", r.Token, taken.Held, had, held, before)
	}
	return taken
}

func oneRun(f *fixture) {
	e := f.awaited("a")
	e.wantTaken(e.run("one", 1, time.Hour), true, "")
	e.wantTaken(e.run("two", 1, time.Hour), false, "")
	e.wantTaken(e.run("one", 1, 2*time.Hour), true, "") // again
	e.wantTaken(e.run("three", 2, time.Hour), true, "one")
	e.wantTaken(e.run("one", 1, time.Hour), false, "") // an earlier attempt's
	other := e.run("other", 1, time.Hour)
	other.ActivityID = 4
	e.wantTaken(other, true, "")
}

func runGoesOver(f *fixture) {
	e := f.awaited("a")
	e.wantTaken(e.run("one", 2, -time.Second), true, "")
	e.wantTaken(e.run("two", 1, time.Hour), false, "") // of an earlier attempt
	f.must(f.p.PutActivityRecords(f.ctx(), e.instance.ExecutionID, provider.ActivityRecord{ActivityID: 3, SeenAt: f.now(), End: provider.EndLeaked}))
	taken := e.wantTaken(e.run("three", 2, time.Hour), true, "one")
	if taken.Left.End != provider.EndLeaked || taken.Before.Attempt != 2 {
		f.t.Errorf("%s", text(taken))
	}
}

func runPutBack(f *fixture) {
	e := f.awaited("a")
	one := e.run("one", 1, -time.Second)
	e.wantTaken(one, true, "")
	two := e.run("two", 1, time.Hour)
	taken := e.wantTaken(two, true, "one")
	f.must(f.p.LeaveRun(f.ctx(), one, nil)) // it is another's by now
	e.wantTaken(e.run("three", 1, time.Hour), false, "")
	f.must(f.p.LeaveRun(f.ctx(), two, taken.Before))
	three := e.run("three", 1, time.Hour)
	e.wantTaken(three, true, "one")
	f.must(f.p.LeaveRun(f.ctx(), three, nil))
	e.wantTaken(e.run("four", 1, time.Hour), true, "")
}

func runEnded(f *fixture) {
	e := f.awaited("a")
	one, late := e.run("one", 1, -time.Second), e.run("late", 1, time.Hour)
	e.wantTaken(one, true, "")
	o := provider.ActivityOutcome{ActivityID: 3, Attempt: 1, Result: history.Payload(`"x"`)}
	if err := f.p.EndRun(f.ctx(), late, &o); !errors.Is(err, provider.ErrLockLost) {
		f.t.Errorf("another's run: %v", err)
	}
	f.must(f.p.EndRun(f.ctx(), one, &o))
	f.must(f.p.EndRun(f.ctx(), one, &o))
	taken := e.wantTaken(late, false, "one")
	f.wantEqual("kept", taken.Outcome, &o)
	if taken := e.wantTaken(e.run("next", 2, time.Hour), true, "one"); taken.Outcome != nil {
		f.t.Errorf("of an earlier attempt: %s", text(taken))
	}
	if taken := e.wantTaken(e.run("stale", 1, time.Hour), false, ""); taken.Outcome != nil {
		f.t.Errorf("of an earlier attempt: %s", text(taken))
	}
}

func runSeesCancel(f *fixture) {
	e := f.awaited("a")
	t := e.turn(e.cancels(3))
	t.Cancels = provider.CancelsOf(t.Events)
	_, err := f.p.AckOrchestrationItem(f.ctx(), t)
	f.must(err)
	if taken := e.wantTaken(e.run("one", 1, time.Hour), true, ""); !taken.Cancel.Requested || taken.Cancel.Reason != "requested" {
		f.t.Errorf("%s", text(taken))
	}
}

// cancels is the decision to cancel an activity.
func (e *execution) cancels(id int64) history.Event {
	return history.Event{Kind: history.ActivityCancelRequested, SourceEventID: id, Reason: "requested", RequestedBy: history.RequestedByBody}
}

func runOfDeleted(f *fixture) {
	e := f.awaited("a")
	f.must(f.p.DeleteInstance(f.ctx(), "a", true))
	if taken := e.wantTaken(e.run("one", 1, time.Hour), true, ""); !taken.Cancel.Deleted {
		f.t.Errorf("%s", text(taken))
	}
	e.wantTaken(e.run("two", 1, time.Hour), true, "") // nothing is left of it
}

// giveUp commits a turn that cancels the activity, or tells what that has caused again.
func (e *execution) giveUp(span provider.TimerSpan) {
	e.f.t.Helper()
	t := e.turn(e.cancels(3))
	t.Cancels, t.CancelledTimers = provider.CancelsOf(t.Events), []provider.TimerSpan{span}
	_, err := e.f.p.AckOrchestrationItem(e.f.ctx(), t)
	e.f.must(err)
	e.follow(t)
}

func turnTellsEnd(f *fixture) {
	for id, c := range map[string]struct {
		after time.Duration
		waits bool
		told  int
	}{
		"waits": {time.Hour, true, 1}, "may have begun": {time.Millisecond, true, 0}, "nobody waits": {time.Hour, false, 0},
	} {
		e := f.awaited(id)
		e.wantVerdicts(e.retry(e.attempted(3, 1, "m.1", c.after)), provider.RetryNext)
		f.messages()
		e.giveUp(provider.TimerSpan{TimerID: 3, CreatedAt: f.now(), Retries: true, Waits: c.waits})
		var ends []provider.ActivityOutcome
		for _, m := range f.messages() {
			if m.InstanceID != id || m.Segment != e.head.Segment {
				f.t.Errorf("%s: %s", id, text(m.Message))
			}
			ends = append(ends, m.Outcomes...)
		}
		if len(ends) != c.told {
			f.t.Errorf("%s: told %s", id, text(ends))
		}
		for _, o := range ends {
			if o.ActivityID != 3 || o.Attempt != 1 || o.Ended != history.EndReturned || o.Error == nil {
				f.t.Errorf("%s: told %s", id, text(o))
			}
		}
	}
}

func cancelLeavesUnsettled(f *fixture) {
	e := f.awaited("a")
	e.giveUp(provider.TimerSpan{TimerID: 3, CreatedAt: f.now(), Retries: true, Waits: true})
	_, err := f.p.RedispatchOrchestration(f.ctx(), e.read(), provider.Position{Inbox: at(1).Inbox, Sequence: "0"})
	f.must(err)
	if items := f.work(Queue); len(items) != 1 || !items[0].Again || !items[0].WaitCancel {
		f.t.Errorf("sent again: %s", text(items))
	}
}
