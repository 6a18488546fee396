package activities

import (
	"errors"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// Waits tests that the end of a cancelled activity with WaitForCancellation is reported when its code does not run
// anymore (R23).
func Waits() kit.Group {
	return kit.Group{Name: "waits", Cases: []kit.Case{
		{Name: "RunHasOneDeliveryAtATime", Run: oneRun},
		{Name: "ExpiredRunIsTransferred", Run: runPassesToNextAttempt},
		{Name: "RunIsReturnedToPreviousHolder", Run: runIsReturned},
		{Name: "AbandonedRunStaysAbandoned", Run: runAbandoned},
		{Name: "OutcomeOfARunIsStoredForItsAttempt", Run: runEnded},
		{Name: "NewRunObservesCancel", Run: runSeesCancel},
		{Name: "RunOfDeletedExecutionWritesNothing", Run: runOfDeleted},
		{Name: "TurnReportsOutcomeOfWaitingActivity", Run: turnReportsEnd},
		{Name: "CancelDoesNotSettleAwaitedActivity", Run: cancelLeavesUnsettled},
		{Name: "RejectedOutputReportsWhetherItMayHaveRun", Run: refusedAfterRuns},
	}}
}

// awaited returns an execution that has scheduled an activity #3 with WaitForCancellation.
func awaited(f *kit.Fixture, id string) *kit.Execution {
	f.T.Helper()
	e := f.StartWithoutWake(id)
	a := kit.Activity(kit.Queue)
	a.Retry, a.Cancel = &history.RetryPolicy{InitialIntervalMs: 1000}, &history.CancelDetails{WaitForCancellation: true}
	e.Commit(kit.TurnStarted(), a)
	f.Work(kit.Queue)
	return e
}

func run(e *kit.Execution, token string, attempt int, lasts time.Duration) provider.Run {
	return provider.Run{
		ExecutionID: e.Instance.ExecutionID, ActivityID: 3, Attempt: attempt, Token: token,
		Until: e.F.StoredNow().Add(lasts),
	}
}

// wantClaim claims a run and fails if Held or the previous holder differs. An empty before means no previous holder.
func wantClaim(e *kit.Execution, r provider.Run, held bool, before string) provider.RunClaim {
	e.F.T.Helper()
	taken, err := e.F.Provider.ClaimRun(e.F.Ctx(), r)
	e.F.Must(err)
	had := ""
	if taken.PreviousRun != nil {
		had = taken.PreviousRun.Token
	}
	if taken.Held != held || had != before {
		e.F.T.Errorf("run %s: held %v, previous run %q; want %v, %q", r.Token, taken.Held, had, held, before)
	}
	return taken
}

func oneRun(f *kit.Fixture) {
	e := awaited(f, "a")
	wantClaim(e, run(e, "one", 1, time.Hour), true, "")
	wantClaim(e, run(e, "two", 1, time.Hour), false, "")
	wantClaim(e, run(e, "one", 1, 2*time.Hour), true, "") // again
	wantClaim(e, run(e, "three", 2, time.Hour), true, "one")
	wantClaim(e, run(e, "one", 1, time.Hour), false, "") // of an earlier attempt
	other := run(e, "other", 1, time.Hour)
	other.ActivityID = 4
	wantClaim(e, other, true, "")
}

func runPassesToNextAttempt(f *kit.Fixture) {
	e := awaited(f, "a")
	wantClaim(e, run(e, "one", 2, -time.Second), true, "")
	wantClaim(e, run(e, "two", 1, time.Hour), false, "") // of an earlier attempt
	f.Must(f.Provider.PutActivityRecords(f.Ctx(), e.Instance.ExecutionID, provider.ActivityRecord{
		ActivityID: 3, SeenAt: f.StoredNow(), CancelOutcome: provider.OutcomeAbandoned,
	}))
	taken := wantClaim(e, run(e, "three", 2, time.Hour), true, "one")
	if taken.PreviousRecord.CancelOutcome != provider.OutcomeAbandoned || taken.PreviousRun.Attempt != 2 {
		f.T.Errorf("got %s", kit.Text(taken))
	}
}

func runIsReturned(f *kit.Fixture) {
	e := awaited(f, "a")
	one := run(e, "one", 1, -time.Second)
	wantClaim(e, one, true, "")
	two := run(e, "two", 1, time.Hour)
	taken := wantClaim(e, two, true, "one")
	f.Must(f.Provider.ReleaseRun(f.Ctx(), one, nil)) // another delivery holds the run now
	wantClaim(e, run(e, "three", 1, time.Hour), false, "")
	f.Must(f.Provider.ReleaseRun(f.Ctx(), two, taken.PreviousRun))
	three := run(e, "three", 1, time.Hour)
	wantClaim(e, three, true, "one")
	f.Must(f.Provider.ReleaseRun(f.Ctx(), three, nil))
	wantClaim(e, run(e, "four", 1, time.Hour), true, "")
}

func runAbandoned(f *kit.Fixture) {
	e := awaited(f, "a")
	one, two := run(e, "one", 1, time.Hour), run(e, "two", 1, time.Hour)
	wantClaim(e, one, true, "")
	over := one
	over.Until, over.Abandoned = f.StoredNow(), true
	f.Must(f.Provider.ReleaseRun(f.Ctx(), one, &over))
	first := wantClaim(e, two, true, "one")
	over = two
	over.Until = f.StoredNow()
	f.Must(f.Provider.ReleaseRun(f.Ctx(), two, &over)) // the run of two has expired
	second := wantClaim(e, run(e, "three", 1, time.Hour), true, "two")
	next := wantClaim(e, run(e, "next", 2, time.Hour), true, "three")
	if !first.PreviousRun.Abandoned || !second.PreviousRun.Abandoned || !next.PreviousRun.Abandoned {
		f.T.Errorf("abandoned: %v, %v, of the next attempt %v", first.PreviousRun.Abandoned,
			second.PreviousRun.Abandoned, next.PreviousRun.Abandoned)
	}
}

func runEnded(f *kit.Fixture) {
	e := awaited(f, "a")
	one, late := run(e, "one", 1, -time.Second), run(e, "late", 1, time.Hour)
	wantClaim(e, one, true, "")
	o := provider.ActivityOutcome{ActivityID: 3, Attempt: 1, Result: history.Payload(`"x"`)}
	if err := f.Provider.CompleteRun(f.Ctx(), late, &o); !errors.Is(err, provider.ErrLockLost) {
		f.T.Errorf("completion of a run that another delivery holds: got error %v", err)
	}
	f.Must(f.Provider.CompleteRun(f.Ctx(), one, &o))
	f.Must(f.Provider.CompleteRun(f.Ctx(), one, &o))
	taken := wantClaim(e, late, false, "one")
	f.WantEqual("kept", taken.Outcome, &o)
	if taken := wantClaim(e, run(e, "next", 2, time.Hour), true, "one"); taken.Outcome != nil {
		f.T.Errorf("outcome of an earlier attempt: got %s", kit.Text(taken))
	}
	if taken := wantClaim(e, run(e, "stale", 1, time.Hour), false, ""); taken.Outcome != nil {
		f.T.Errorf("outcome of an earlier attempt: got %s", kit.Text(taken))
	}
}

func runSeesCancel(f *kit.Fixture) {
	e := awaited(f, "a")
	t := e.Turn(cancelEvent(3))
	t.Cancels = provider.CancelsOf(t.Events)
	_, err := f.Provider.AckOrchestrationItem(f.Ctx(), t)
	f.Must(err)
	if taken := wantClaim(e, run(e, "one", 1, time.Hour), true, ""); !taken.Cancel.Requested ||
		taken.Cancel.Reason != "requested" {
		f.T.Errorf("got %s", kit.Text(taken))
	}
}

// cancelEvent returns the decision to cancel an activity.
func cancelEvent(id int64) history.Event {
	return history.Event{
		Kind: history.ActivityCancelRequested, SourceEventID: id, Reason: "requested",
		RequestedBy: history.RequestedByOrchestration,
	}
}

func runOfDeleted(f *kit.Fixture) {
	e := awaited(f, "a")
	f.Must(f.Provider.DeleteInstance(f.Ctx(), "a", true))
	if taken := wantClaim(e, run(e, "one", 1, time.Hour), true, ""); !taken.Cancel.Deleted {
		f.T.Errorf("got %s", kit.Text(taken))
	}
	wantClaim(e, run(e, "two", 1, time.Hour), true, "") // the execution has no open work
}

// abandon commits a turn that cancels the activity, or sends the outputs of that turn again.
func abandon(e *kit.Execution, waiting history.OpenItem) {
	e.F.T.Helper()
	e.Before().AddOpen(waiting)
	t := e.Turn(cancelEvent(3))
	t.Cancels = provider.CancelsOf(t.Events)
	_, err := e.F.Provider.AckOrchestrationItem(e.F.Ctx(), t)
	e.F.Must(err)
	e.Follow(t)
}

func turnReportsEnd(f *kit.Fixture) {
	for id, c := range map[string]struct {
		after    time.Duration
		waits    bool
		reported int
	}{
		"waits": {time.Hour, true, 1}, "may have started": {time.Millisecond, true, 0},
		"no waiting receiver": {time.Hour, false, 0},
	} {
		e := awaited(f, id)
		wantVerdicts(e, retry(e, attempted(e, 3, 1, "m.1", c.after)), provider.RetryNext)
		f.Messages()
		abandon(e, history.OpenItem{
			ID: 3, Kind: history.ActivityScheduled, ScheduledAt: f.StoredNow(), MayHaveRetryTimer: true,
			WaitsForCancellation: c.waits,
		})
		var ends []provider.ActivityOutcome
		for _, m := range f.Messages() {
			if m.InstanceID != id || m.Segment != e.Head.Segment {
				f.T.Errorf("%s: got %s", id, kit.Text(m.Message))
			}
			ends = append(ends, m.Outcomes...)
		}
		if len(ends) != c.reported {
			f.T.Errorf("%s: messages: %s", id, kit.Text(ends))
		}
		for _, o := range ends {
			if o.ActivityID != 3 || o.Attempt != 1 || o.Ended != history.OutcomeReturned || o.Error == nil {
				f.T.Errorf("%s: messages: %s", id, kit.Text(o))
			}
		}
	}
}

func cancelLeavesUnsettled(f *kit.Fixture) {
	e := awaited(f, "a")
	abandon(e, history.OpenItem{
		ID: 3, Kind: history.ActivityScheduled, ScheduledAt: f.StoredNow(), MayHaveRetryTimer: true,
		WaitsForCancellation: true,
	})
	_, err := f.Provider.RedispatchOrchestration(f.Ctx(), e.Read(), kit.Since(provider.Position{
		Inbox: kit.At(1).Inbox, Sequence: "0",
	}))
	f.Must(err)
	if items := f.Work(kit.Queue); len(items) != 1 || !items[0].PossibleDuplicate || !items[0].WaitForCancellation {
		f.T.Errorf("sent again: got %s", kit.Text(items))
	}
}

// refusedAfterRuns checks the reported outcome of rejected activities. An activity that is rejected when it is first
// sent has not started. If it may have been sent before, the outcome is unknown. A rejected later attempt follows an
// attempt that ran.
func refusedAfterRuns(f *kit.Fixture) {
	e := f.StartWithoutWake("a")
	a := kit.Activity("nowhere")
	a.Retry, a.Cancel = &history.RetryPolicy{InitialIntervalMs: 1000}, &history.CancelDetails{WaitForCancellation: true}
	refused, err := f.Provider.AckOrchestrationItem(f.Ctx(), e.Turn(kit.TurnStarted(), a))
	f.Must(err)
	wantRefusedAs(f, refused, "")
	e.Head.Segment, e.Head.Watermark = 1, kit.At(1)
	wantRefusedAs(f, f.Redispatch(e, kit.At(1)), history.OutcomeWorkerLost)
	wantRefusedAs(f, retry(e, attempted(e, 3, 1, "m.1", time.Millisecond)).RejectedOutputs, history.OutcomeReturned)
	given := attempted(e, 3, 2, "m.2", time.Millisecond)
	given.Ended = history.OutcomeAbandoned
	wantRefusedAs(f, retry(e, given).RejectedOutputs, history.OutcomeAbandoned)
	wantRefusedAs(f, retry(e, given).RejectedOutputs, history.OutcomeAbandoned) // reported again
}

// wantRefusedAs fails if the output of event 3 is not rejected with this Ended.
func wantRefusedAs(f *kit.Fixture, refused []provider.OutputFailure, ended string) {
	f.T.Helper()
	wantRefused(f, refused)
	if len(refused) == 1 && refused[0].Ended != ended {
		f.T.Errorf("rejected output has outcome %q, want %q", refused[0].Ended, ended)
	}
}
