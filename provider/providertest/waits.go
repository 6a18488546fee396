package providertest

import (
	"errors"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// The end of a cancelled activity that is awaited is reported when none of its code runs any more (R23).
func waits() group {
	return group{"waits", []testCase{
		{name: "OneDeliveryAtATimeHasTheRun", run: oneRun},
		{name: "ARunThatHasRunOutGoesOver", run: runGoesOver},
		{name: "ARunIsPutBackForWhoHadItBefore", run: runPutBack},
		{name: "ARunThatWasGivenUpStaysSo", run: runGivenUp},
		{name: "WhatARunHasComeToIsKeptForItsAttempt", run: runEnded},
		{name: "WhoTakesARunSeesTheCancel", run: runSeesCancel},
		{name: "ARunOfADeletedExecutionLeavesNothing", run: runOfDeleted},
		{name: "TheTurnTellsTheEndOfWhatWaitsForItsNextAttempt", run: turnTellsEnd},
		{name: "ACancelDoesNotSettleWhatIsWaitedFor", run: cancelLeavesUnsettled},
		{name: "ARefusalSaysWhatMayHaveRun", run: refusedAfterRuns},
	}}
}

// awaited returns an execution that has scheduled an activity #3 with WaitForCancellation.
func (f *fixture) awaited(id string) *execution {
	f.t.Helper()
	e := f.quiet(id)
	a := activity(Queue)
	a.Retry, a.Cancel = &history.RetryPolicy{InitialIntervalMs: 1000}, &history.CancelDetails{WaitForCancellation: true}
	e.commit(turnStarted(), a)
	f.work(Queue)
	return e
}

func (e *execution) run(token string, attempt int, lasts time.Duration) provider.Run {
	return provider.Run{ExecutionID: e.instance.ExecutionID, ActivityID: 3, Attempt: attempt, Token: token, Until: e.f.now().Add(lasts)}
}

// wantTaken fails unless the run is taken, or not, and the previous holder is before; empty means none.
func (e *execution) wantTaken(r provider.Run, held bool, before string) provider.RunClaim {
	e.f.t.Helper()
	taken, err := e.f.p.ClaimRun(e.f.ctx(), r)
	e.f.must(err)
	had := ""
	if taken.PreviousRun != nil {
		had = taken.PreviousRun.Token
	}
	if taken.Held != held || had != before {
		e.f.t.Errorf("run %s: held %v, previous run %q; want %v, %q", r.Token, taken.Held, had, held, before)
	}
	return taken
}

func oneRun(f *fixture) {
	e := f.awaited("a")
	e.wantTaken(e.run("one", 1, time.Hour), true, "")
	e.wantTaken(e.run("two", 1, time.Hour), false, "")
	e.wantTaken(e.run("one", 1, 2*time.Hour), true, "") // again
	e.wantTaken(e.run("three", 2, time.Hour), true, "one")
	e.wantTaken(e.run("one", 1, time.Hour), false, "") // of an earlier attempt
	other := e.run("other", 1, time.Hour)
	other.ActivityID = 4
	e.wantTaken(other, true, "")
}

func runGoesOver(f *fixture) {
	e := f.awaited("a")
	e.wantTaken(e.run("one", 2, -time.Second), true, "")
	e.wantTaken(e.run("two", 1, time.Hour), false, "") // of an earlier attempt
	f.must(f.p.PutActivityRecords(f.ctx(), e.instance.ExecutionID, provider.ActivityRecord{ActivityID: 3, SeenAt: f.now(), CancelOutcome: provider.OutcomeAbandoned}))
	taken := e.wantTaken(e.run("three", 2, time.Hour), true, "one")
	if taken.PreviousRecord.CancelOutcome != provider.OutcomeAbandoned || taken.PreviousRun.Attempt != 2 {
		f.t.Errorf("%s", text(taken))
	}
}

func runPutBack(f *fixture) {
	e := f.awaited("a")
	one := e.run("one", 1, -time.Second)
	e.wantTaken(one, true, "")
	two := e.run("two", 1, time.Hour)
	taken := e.wantTaken(two, true, "one")
	f.must(f.p.ReleaseRun(f.ctx(), one, nil)) // another delivery holds the run now
	e.wantTaken(e.run("three", 1, time.Hour), false, "")
	f.must(f.p.ReleaseRun(f.ctx(), two, taken.PreviousRun))
	three := e.run("three", 1, time.Hour)
	e.wantTaken(three, true, "one")
	f.must(f.p.ReleaseRun(f.ctx(), three, nil))
	e.wantTaken(e.run("four", 1, time.Hour), true, "")
}

func runGivenUp(f *fixture) {
	e := f.awaited("a")
	one, two := e.run("one", 1, time.Hour), e.run("two", 1, time.Hour)
	e.wantTaken(one, true, "")
	over := one
	over.Until, over.Abandoned = f.now(), true
	f.must(f.p.ReleaseRun(f.ctx(), one, &over))
	first := e.wantTaken(two, true, "one")
	over = two
	over.Until = f.now()
	f.must(f.p.ReleaseRun(f.ctx(), two, &over)) // its run has expired
	second := e.wantTaken(e.run("three", 1, time.Hour), true, "two")
	next := e.wantTaken(e.run("next", 2, time.Hour), true, "three")
	if !first.PreviousRun.Abandoned || !second.PreviousRun.Abandoned || !next.PreviousRun.Abandoned {
		f.t.Errorf("abandoned: %v, %v, of the next attempt %v", first.PreviousRun.Abandoned,
			second.PreviousRun.Abandoned, next.PreviousRun.Abandoned)
	}
}

func runEnded(f *fixture) {
	e := f.awaited("a")
	one, late := e.run("one", 1, -time.Second), e.run("late", 1, time.Hour)
	e.wantTaken(one, true, "")
	o := provider.ActivityOutcome{ActivityID: 3, Attempt: 1, Result: history.Payload(`"x"`)}
	if err := f.p.CompleteRun(f.ctx(), late, &o); !errors.Is(err, provider.ErrLockLost) {
		f.t.Errorf("completion of a run that another delivery holds: %v", err)
	}
	f.must(f.p.CompleteRun(f.ctx(), one, &o))
	f.must(f.p.CompleteRun(f.ctx(), one, &o))
	taken := e.wantTaken(late, false, "one")
	f.wantEqual("kept", taken.Outcome, &o)
	if taken := e.wantTaken(e.run("next", 2, time.Hour), true, "one"); taken.Outcome != nil {
		f.t.Errorf("outcome of an earlier attempt: %s", text(taken))
	}
	if taken := e.wantTaken(e.run("stale", 1, time.Hour), false, ""); taken.Outcome != nil {
		f.t.Errorf("outcome of an earlier attempt: %s", text(taken))
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

// cancels returns the decision to cancel an activity.
func (e *execution) cancels(id int64) history.Event {
	return history.Event{Kind: history.ActivityCancelRequested, SourceEventID: id, Reason: "requested", RequestedBy: history.RequestedByOrchestration}
}

func runOfDeleted(f *fixture) {
	e := f.awaited("a")
	f.must(f.p.DeleteInstance(f.ctx(), "a", true))
	if taken := e.wantTaken(e.run("one", 1, time.Hour), true, ""); !taken.Cancel.Deleted {
		f.t.Errorf("%s", text(taken))
	}
	e.wantTaken(e.run("two", 1, time.Hour), true, "") // it has no open work
}

// giveUp commits a turn that cancels the activity, or sends its outputs again.
func (e *execution) giveUp(waiting history.OpenItem) {
	e.f.t.Helper()
	e.before().AddOpen(waiting)
	t := e.turn(e.cancels(3))
	t.Cancels = provider.CancelsOf(t.Events)
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
		e.giveUp(history.OpenItem{ID: 3, Kind: history.ActivityScheduled, ScheduledAt: f.now(), MayHaveRetryTimer: true, WaitsForCancellation: c.waits})
		var ends []provider.ActivityOutcome
		for _, m := range f.messages() {
			if m.InstanceID != id || m.Segment != e.head.Segment {
				f.t.Errorf("%s: %s", id, text(m.Message))
			}
			ends = append(ends, m.Outcomes...)
		}
		if len(ends) != c.told {
			f.t.Errorf("%s: messages: %s", id, text(ends))
		}
		for _, o := range ends {
			if o.ActivityID != 3 || o.Attempt != 1 || o.Ended != history.OutcomeReturned || o.Error == nil {
				f.t.Errorf("%s: messages: %s", id, text(o))
			}
		}
	}
}

func cancelLeavesUnsettled(f *fixture) {
	e := f.awaited("a")
	e.giveUp(history.OpenItem{ID: 3, Kind: history.ActivityScheduled, ScheduledAt: f.now(), MayHaveRetryTimer: true, WaitsForCancellation: true})
	_, err := f.p.RedispatchOrchestration(f.ctx(), e.read(), since(provider.Position{Inbox: at(1).Inbox, Sequence: "0"}))
	f.must(err)
	if items := f.work(Queue); len(items) != 1 || !items[0].PossibleDuplicate || !items[0].WaitForCancellation {
		f.t.Errorf("sent again: %s", text(items))
	}
}

// refusedAfterRuns: an activity that is rejected when it is first sent has not started. If it may have been sent
// before, that is unknown. A rejected later attempt follows an attempt that ran.
func refusedAfterRuns(f *fixture) {
	e := f.quiet("a")
	a := activity("nowhere")
	a.Retry, a.Cancel = &history.RetryPolicy{InitialIntervalMs: 1000}, &history.CancelDetails{WaitForCancellation: true}
	refused, err := f.p.AckOrchestrationItem(f.ctx(), e.turn(turnStarted(), a))
	f.must(err)
	f.wantRefusedAs(refused, "")
	e.head.Segment, e.head.Watermark = 1, at(1)
	f.wantRefusedAs(f.redispatch(e, at(1)), history.OutcomeWorkerLost)
	f.wantRefusedAs(e.retry(e.attempted(3, 1, "m.1", time.Millisecond)).RejectedOutputs, history.OutcomeReturned)
	given := e.attempted(3, 2, "m.2", time.Millisecond)
	given.Ended = history.OutcomeAbandoned
	f.wantRefusedAs(e.retry(given).RejectedOutputs, history.OutcomeAbandoned)
	f.wantRefusedAs(e.retry(given).RejectedOutputs, history.OutcomeAbandoned) // reported again
}

// wantRefusedAs fails unless the output of event 3 is rejected with this Ended.
func (f *fixture) wantRefusedAs(refused []provider.OutputFailure, ended string) {
	f.t.Helper()
	f.wantRefused(refused)
	if len(refused) == 1 && refused[0].Ended != ended {
		f.t.Errorf("rejected output has outcome %q, want %q", refused[0].Ended, ended)
	}
}
