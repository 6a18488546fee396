package work

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/body"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/internal/standings"
	"github.com/perdure/perdure/provider"
)

// admission finds out whether the activity of a task is to be run here and now: whether it is due, not cancelled, not over, in time and
// registered, and what its deliveries have come to. It returns what runs the activity, or the result without.
type admission struct {
	base      *intake.Base
	registry  *registry.Registry
	options   *Options
	provider  provider.Provider
	manager   *manager
	standings *standings.Standings // of executions whose activities were delivered again
	alone     *intake.Alone
	// interceptors are nil where there are none.
	interceptors *body.Chain
}

// admit admits an activity, beside the others of its batch or, where a mark stands, when its turn has come.
func (a *admission) admit(ctx context.Context, t *task) (run admitted, hindered *result) {
	run, hindered = a.prepare(ctx, t)
	if hindered != nil || !t.doubtful() {
		return run, hindered
	}
	if hindered = a.mark(ctx, t, true); hindered != nil || t.suspicion.marked {
		return run, hindered
	}

	if !a.awaitTurn(ctx, t) {
		return admitted{}, &result{back: true}
	}
	a.lookAgain(ctx, t)
	if run, hindered = a.prepare(ctx, t); hindered == nil {
		hindered = a.mark(ctx, t, false)
	}
	return run, hindered
}

// prepare admits an activity, whatever its deliveries have come to.
func (a *admission) prepare(ctx context.Context, t *task) (run admitted, hindered *result) {
	it := t.item
	hop := false
	if it.NotBefore != nil {
		if hop = it.NotBefore.Sub(a.options.Clock()) > intake.WaitHere; !hop {
			if err := intake.WaitUntil(ctx, a.options.Clock, *it.NotBefore); err != nil {
				return admitted{}, &result{back: true}
			}
			a.lookAgain(ctx, t)
		}
	}

	runs := it.NeedsRunClaim() && !hop
	if runs { // what is over needs no run, for which its copies would have to wait
		if hindered = a.overBefore(ctx, t); hindered != nil {
			return admitted{}, hindered
		}
	}
	if hindered = a.checkCancel(ctx, t, runs); hindered != nil {
		return admitted{}, hindered
	}
	if !runs {
		if hindered = a.overBefore(ctx, t); hindered != nil {
			return admitted{}, hindered
		}
	}

	switch {
	case tooLate(&it.WorkItem, a.options.Clock()):
		return admitted{}, &result{outcome: a.tooLate(ctx, t)}
	case hop && mayNotHop(it):
		return admitted{}, &result{back: true}
	case hop:
		return admitted{}, a.hop(ctx, t)
	}
	return a.runnable(ctx, t)
}

// checkCancel returns the result of a task whose activity is cancelled, or of which that cannot be read. An activity that is waited for
// takes its run first.
func (a *admission) checkCancel(ctx context.Context, t *task, runs bool) *result {
	if runs {
		return a.takeRun(ctx, t)
	}
	cancel, unread, err := t.cancels.Of(t.item.ActivityID)
	if err != nil {
		t.log().ErrorContext(ctx, "cancel record read failed, releasing the work item",
			"event", logevent.ActivityCancelCheckFailed, "error", err)
		return &result{back: true}
	}
	return a.heed(ctx, t, &cancel, unread)
}

// takeRun makes a task the one that runs its activity, and checks then whether the activity is cancelled.
func (a *admission) takeRun(ctx context.Context, t *task) *result {
	taken, err := a.manager.runs.take(ctx, t)
	switch {
	case err != nil:
		t.log().ErrorContext(ctx, "claiming the activity failed, releasing the work item",
			"event", logevent.ActivityClaimFailed, "error", err)
		return &result{back: true}
	case taken.Outcome != nil: // it may have been sent, or not
		return &result{outcome: taken.Outcome}
	case !taken.Held:
		return a.copyOf(ctx, t)
	}
	if over := t.handedOver(ctx, &taken.PreviousRecord); over != nil { // it has an end that is not this worker's to send
		return over
	}
	if cancelled := a.heed(ctx, t, &taken.Cancel, taken.CancelsFrom); cancelled != nil {
		return cancelled
	}
	return onlyOnce(ctx, t)
}

// onlyOnce is the result of a task of which no attempt is begun twice, where a delivery before it may have begun this one; nil where none has (R32).
func onlyOnce(ctx context.Context, t *task) *result {
	if before := t.run.before; !t.item.AtMostOnce || before == nil || before.Attempt != t.item.Attempt {
		return nil
	}
	t.log().WarnContext(ctx, "at-most-once activity may have started before, failing the attempt",
		"event", logevent.ActivityInterrupted, "attemptCount", t.item.Record.ReceiveCount)
	r := t.interrupted(nil)
	if t.item.WaitForCancellation {
		r.outcome.Ended = t.endBefore()
	}
	return r
}

// heed is the result of a task whose activity was cancelled before it began here; nil where it was not.
func (a *admission) heed(ctx context.Context, t *task, cancel *provider.CancelInfo, unread int64) *result {
	if !cancel.Requested {
		t.unread = unread
		return nil
	}
	t.log().InfoContext(ctx, "skipping activity: cancelled before it started", "event", logevent.ActivitySkipped,
		"reason", cancel.Reason, "message", cancel.Message,
		"decidedFor", max(0, a.options.Clock().Sub(cancel.RequestedAt)))
	t.batch.worker.meter.Count(intake.MetricActivitiesCancelled, t.item.Name, 1)
	t.stop.isCancelled(cancel)
	if t.run == nil || t.run.before == nil { // else its code may have begun elsewhere, where it is recorded when it saw the cancel
		a.manager.records.end(ctx, t, a.options.Clock(), provider.OutcomeNeverStarted)
	}
	return a.notBegun(ctx, t, cancel)
}

// notBegun is the result of a task whose activity was found cancelled before its code began here. Where the end is waited for, its run and
// its attempt tell whether code began before. Of an attempt that is not the current one nothing is sent.
func (a *admission) notBegun(ctx context.Context, t *task, cancel *provider.CancelInfo) *result {
	if !t.isWaitedFor() {
		return &result{}
	}
	if current, hindered := a.isCurrent(ctx, t); hindered != nil || !current {
		return cmp.Or(hindered, &result{})
	}
	seenAt := a.options.Clock()
	if t.run != nil && !t.run.left.SeenAt.IsZero() {
		seenAt = t.run.left.SeenAt
	}
	outcome := t.cancelled(&perdure.CancelledError{Reason: perdure.CancelReason(cancel.Reason), Message: cancel.Message})
	r := t.endedAs(result{outcome: outcome}, t.endBefore(), seenAt)
	return &r
}

// copyOf is the result of a task whose activity another delivery runs, or has just left: it comes again when that is over. An attempt that
// is not the current one is over by now.
func (a *admission) copyOf(ctx context.Context, t *task) *result {
	if current, hindered := a.isCurrent(ctx, t); hindered != nil || !current {
		return cmp.Or(hindered, &result{})
	}
	t.log().InfoContext(ctx, "activity runs in another delivery, releasing the work item",
		"event", logevent.ActivityDuplicateReleased, "attemptCount", t.item.Record.ReceiveCount)
	return &result{back: true}
}

// isCurrent reports whether a task is of the current attempt of its activity.
func (a *admission) isCurrent(ctx context.Context, t *task) (current bool, hindered *result) {
	it := t.item
	if it.Retry == nil {
		return true, nil
	}
	at, err := a.provider.ReadRetry(ctx, it.ExecutionID, it.ActivityID)
	if err != nil {
		t.log().ErrorContext(ctx, "attempt record read failed, releasing the work item",
			"event", logevent.ActivityAttemptReadFailed, "error", err)
		return false, &result{back: true}
	}
	t.past.ended(at.Ended)
	return at.Attempt == 0 || at.Attempt == it.Attempt, nil
}

// overBefore is the result of a task whose activity has ended before this delivery, or has another attempt by now; nil where it has not.
func (a *admission) overBefore(ctx context.Context, t *task) *result {
	switch over, err := a.isOver(ctx, t); {
	case err != nil:
		t.log().ErrorContext(ctx, "redelivery check failed, releasing the work item",
			"event", logevent.ActivityRedeliveryCheckFailed, "error", err)
		return &result{back: true}
	case over:
		t.log().InfoContext(ctx, "skipping redelivered activity: the attempt has ended",
			"event", logevent.ActivityRedeliverySkipped, "attemptCount", t.item.Record.ReceiveCount)
		return &result{}
	}
	return nil
}

// lookAgain has a task read anew what its batch has read before it had to wait.
func (a *admission) lookAgain(ctx context.Context, t *task) {
	t.cancels, t.looks = a.readAgain(ctx, t), newLook(ctx)
}

// readAgain is a read of the cancel record for a task alone.
func (a *admission) readAgain(ctx context.Context, t *task) *provider.CancelRead {
	return provider.NewCancelRead(ctx, a.provider.ReadCancels, t.item.ExecutionID, t.item.Segment)
}

// hop sends a work item again that is not due for longer than its queue could delay it: a release before this one has sent it. Once the
// lock is over, another worker does.
func (a *admission) hop(ctx context.Context, t *task) *result {
	if !t.item.Record.Held(a.options.Clock()) {
		return &result{back: true}
	}
	if err := a.provider.PutWorkItems(ctx, t.item.WorkItem); err != nil {
		t.log().ErrorContext(ctx, "resending an attempt that is not due failed, releasing the work item",
			"event", logevent.ActivityEarlyResendFailed, "error", err)
		return &result{back: true}
	}
	return &result{}
}

// tooLate is the outcome of an activity that may not begin any more.
func (a *admission) tooLate(ctx context.Context, t *task) *provider.ActivityOutcome {
	it := t.item
	t.log().WarnContext(ctx, "skipping activity: schedule-to-close timeout expired", "event", logevent.ActivityExpired,
		"closeBy", *it.ScheduleToCloseDeadline)
	o := &provider.ActivityOutcome{ActivityID: it.ActivityID, Attempt: it.Attempt, Error: body.Closed(it.Name)}
	if it.WaitForCancellation {
		o.Ended = t.endBefore()
	}
	return o
}

// runnable finds an activity, if this build can run it.
func (a *admission) runnable(ctx context.Context, t *task) (run admitted, hindered *result) {
	it := t.item
	activity, ok := a.registry.Activity(it.Name)
	if !ok {
		t.log().ErrorContext(ctx, "activity not registered in this build, releasing the work item",
			"event", logevent.ActivityUnregistered, intake.DimensionHub, a.options.HubName,
			intake.DimensionQueue, a.options.Queue, intake.MetricUnregistered, 1,
			intake.MetricAttribute, intake.MetricsOf(a.options.Clock(), []string{intake.DimensionHub, intake.DimensionQueue}, intake.MetricUnit{Name: intake.MetricUnregistered, Unit: intake.UnitCount}))
		a.manager.records.unknown(ctx, t)
		return admitted{}, &result{back: true}
	}
	input, hindered := a.openInput(ctx, t)
	if hindered != nil {
		return admitted{}, hindered
	}
	if hindered = a.readPast(ctx, t); hindered != nil {
		return admitted{}, hindered
	}
	if hindered = a.readySigner(ctx, t); hindered != nil {
		return admitted{}, hindered
	}

	t.pollEvery = cmp.Or(activity.CancelPollInterval, a.options.CancelPollInterval)
	return admitted{body.Within(a.interceptors, activity.Run), input}, nil
}

// admitted is an activity that is to be run.
type admitted struct {
	code  body.Run
	input json.RawMessage
}

// run runs the activity of a task.
func (a admitted) run(ctx context.Context, t *task) result {
	it := t.item
	value, failure := t.runWithin(ctx, a.code, a.input)
	if failure != nil && failure.Type == registry.TypePending {
		if it.ExclusiveKey == "" {
			return result{outcome: t.pending()}
		}
		failure = exclusivePending(it)
	}
	o := &provider.ActivityOutcome{ActivityID: it.ActivityID, Attempt: it.Attempt, Error: failure}
	if !sealOutcome(ctx, t, o, value) {
		return result{back: true}
	}
	if it.WaitForCancellation && t.abandoned {
		o.Ended = history.OutcomeAbandoned
	}
	return result{outcome: o}
}

// readPast reads what an earlier attempt or delivery may have left. Most are the first, and it costs them nothing. The result is that of
// one whose earlier delivery has handed it over.
func (a *admission) readPast(ctx context.Context, t *task) (hindered *result) {
	it := t.item
	if it.Attempt <= 1 && it.Record.ReceiveCount <= 1 && it.NotBefore == nil && !it.PossibleDuplicate {
		return nil
	}
	r, err := a.provider.ReadActivityRecord(ctx, it.ExecutionID, it.ActivityID)
	if err != nil {
		t.log().ErrorContext(ctx, "activity record read failed, releasing the work item",
			"event", logevent.ActivityRecordReadFailed, "error", err)
		return &result{back: true}
	}
	if hindered = t.handedOver(ctx, &r); hindered != nil {
		return hindered
	}
	left, err := openDetails(ctx, t, r.Details)
	if err != nil {
		t.log().ErrorContext(ctx, "heartbeat details read failed, releasing the work item",
			"event", logevent.HeartbeatReadFailed, "error", err)
		return &result{back: true}
	}
	leftDetails(t, left)
	a.manager.records.known(ctx, t, &r)
	if r.InvocationTimeoutAttempt == it.Attempt {
		t.past.runOuts = r.InvocationTimeouts
	}
	return nil
}
