package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/perdure/perdure/dispatch/internal/activitypayload"
	"github.com/perdure/perdure/dispatch/internal/body"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/dispatch/internal/outcome"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/internal/settlements"
	"github.com/perdure/perdure/provider"
)

// admission checks whether the activity of a task may run. The activity must be due, registered, within its deadlines,
// and neither cancelled nor settled. If earlier deliveries have crashed their processes, it must run alone, and at most
// MaxCrashes times. Each check returns nil, or the result of a task that must not run.
type admission struct {
	options      *Options
	registry     *registry.Registry
	provider     provider.Provider
	recorder     *recorder
	payloads     *activitypayload.Encoder
	interceptors *body.Chain // nil if there are none
	cancels      *cancelCheck
	settlements  *settlements.Cache
	crashes      *crashGuard
}

// activityCode is the code of an admitted activity, with its input.
type activityCode struct {
	run   body.Run
	input json.RawMessage
}

// awaitKey waits for the tasks with the same exclusive key that come before the task in the batch. It reports whether
// the task may run.
func (a *admission) awaitKey(ctx context.Context, t *task) bool {
	if t.key.IsFirst() {
		return true
	}
	if !t.batch.keys.Await(ctx, &t.key) {
		return false
	}
	a.refresh(ctx, t)
	return true
}

// admit checks a task. A task with crash markers first waits until it may run alone, and is then checked again.
func (a *admission) admit(ctx context.Context, t *task) (code activityCode, refused *result) {
	code, refused = a.check(ctx, t)
	if refused != nil || !t.needsMarker() {
		return code, refused
	}
	if refused = a.crashes.mark(ctx, t, true); refused != nil || t.crashes.IsMarked() {
		return code, refused
	}

	if !a.crashes.awaitTurn(ctx, t) {
		return activityCode{}, &released
	}
	a.refresh(ctx, t)
	if code, refused = a.check(ctx, t); refused == nil {
		refused = a.crashes.mark(ctx, t, false)
	}
	return code, refused
}

// check checks a task, except for its crash markers.
func (a *admission) check(ctx context.Context, t *task) (code activityCode, refused *result) {
	it := t.item
	early := false
	if it.NotBefore != nil {
		if early = it.NotBefore.Sub(a.options.Clock()) > intake.MaxTimerWait; !early {
			if err := intake.WaitUntil(ctx, a.options.Clock, *it.NotBefore); err != nil {
				return activityCode{}, &released
			}
			a.refresh(ctx, t)
		}
	}

	acquires := it.NeedsRunClaim() && !early
	if acquires { // a lease for a settled activity would only delay other deliveries
		if refused = a.checkSettled(ctx, t); refused != nil {
			return activityCode{}, refused
		}
	}
	if refused = a.checkCancelled(ctx, t, acquires); refused != nil {
		return activityCode{}, refused
	}
	if !acquires {
		if refused = a.checkSettled(ctx, t); refused != nil {
			return activityCode{}, refused
		}
	}

	switch {
	case isTooLate(&it.WorkItem, a.options.Clock()):
		return activityCode{}, a.refuseLate(ctx, t)
	case early && it.ExclusiveKey != "": // its FIFO queue has no delays, and deduplicates a copy
		return activityCode{}, &released
	case early:
		return activityCode{}, a.resendEarly(ctx, t)
	}
	return a.load(ctx, t)
}

// checkCancelled refuses a cancelled activity. If the task needs the run lease, it acquires the lease first (R23).
func (a *admission) checkCancelled(ctx context.Context, t *task, acquire bool) *result {
	if acquire {
		return a.cancels.acquireRun(ctx, t)
	}
	return a.cancels.read(ctx, t)
}

// checkSettled refuses a task whose activity was settled before this delivery, or whose attempt is outdated.
func (a *admission) checkSettled(ctx context.Context, t *task) *result {
	switch ended, err := a.hasEnded(ctx, t); {
	case err != nil:
		t.Log().ErrorContext(ctx, "redelivery check failed, releasing the work item",
			"event", logevent.ActivityRedeliveryCheckFailed, "error", err)
		return &released
	case ended:
		t.Log().InfoContext(ctx, "skipping redelivered activity: the attempt has ended",
			"event", logevent.ActivityRedeliverySkipped, "attemptCount", t.item.Record.ReceiveCount)
		return &result{}
	}
	return nil
}

// refresh replaces the reads that the task shares with its batch, because the task had to wait.
func (a *admission) refresh(ctx context.Context, t *task) {
	t.cancelRead = provider.NewCancelRead(ctx, a.provider.ReadCancels, t.item.ExecutionID, t.item.Segment)
	t.settledRead = settlements.NewSharedRead(ctx)
}

// resendEarly resends a work item whose due time is beyond the maximum delay of its queue. Only earlier releases send
// such work items. If the lock is lost, another worker resends the work item.
func (a *admission) resendEarly(ctx context.Context, t *task) *result {
	if !t.item.Record.Held(a.options.Clock()) {
		return &released
	}
	if err := a.provider.PutWorkItems(ctx, t.item.WorkItem); err != nil {
		t.Log().ErrorContext(ctx, "resending an attempt that is not due failed, releasing the work item",
			"event", logevent.ActivityEarlyResendFailed, "error", err)
		return &released
	}
	return &result{}
}

// isTooLate reports whether the schedule-to-close timeout of an activity has expired at a time.
func isTooLate(it *provider.WorkItem, at time.Time) bool {
	return it.ScheduleToCloseDeadline != nil && !at.Before(*it.ScheduleToCloseDeadline)
}

func (a *admission) refuseLate(ctx context.Context, t *task) *result {
	it := t.item
	t.Log().WarnContext(ctx, "skipping activity: schedule-to-close timeout expired", "event", logevent.ActivityExpired,
		"closeBy", *it.ScheduleToCloseDeadline)
	return t.ended(outcome.Of(it, body.ScheduleToCloseExpired(it.Name)), t.endBeforeStart())
}

// load returns the code and the input of an activity, and reads the record of its earlier deliveries.
func (a *admission) load(ctx context.Context, t *task) (code activityCode, refused *result) {
	it := t.item
	activity, ok := a.registry.Activity(it.Name)
	if !ok {
		return activityCode{}, a.refuseUnregistered(ctx, t)
	}
	input, f, err := a.payloads.DecodeInput(ctx, t)
	switch {
	case err != nil:
		return activityCode{}, &released
	case f != nil:
		return activityCode{}, &result{outcome: outcome.Of(it, f)}
	}
	if refused = a.readRecord(ctx, t); refused != nil {
		return activityCode{}, refused
	}
	if t.tokens, refused = a.completionTokens(ctx, t); refused != nil {
		return activityCode{}, refused
	}

	t.pollInterval = cmp.Or(activity.CancelPollInterval, a.options.CancelPollInterval)
	return activityCode{body.Intercept(a.interceptors, activity.Run), input}, nil
}

// refuseUnregistered releases an activity that is not registered in this build, and records the reason.
func (a *admission) refuseUnregistered(ctx context.Context, t *task) *result {
	metrics := intake.MetricsOf(a.options.Clock(), []string{intake.DimensionHub, intake.DimensionQueue},
		intake.MetricUnit{Name: intake.MetricUnregistered, Unit: intake.UnitCount})
	t.Log().ErrorContext(ctx, "activity not registered in this build, releasing the work item",
		"event", logevent.ActivityUnregistered, intake.DimensionHub, a.options.HubName,
		intake.DimensionQueue, a.options.Queue, intake.MetricUnregistered, 1, intake.MetricAttribute, metrics)
	a.recorder.unregistered(ctx, t)
	return &released
}

func (a *admission) completionTokens(ctx context.Context, t *task) (tokens provider.CompletionSigner, refused *result) {
	tokens, err := a.provider.CompletionTokens(ctx)
	if err != nil {
		t.Log().ErrorContext(ctx, "completion token failed, releasing the work item",
			"event", logevent.CompletionTokenFailed, "error", err)
		return nil, &released
	}
	return tokens, nil
}

// readRecord reads the record of earlier attempts and deliveries: heartbeat details, invocation timeouts and a pending
// attempt. It returns the result of a pending attempt. It reads nothing for the first delivery of a first attempt.
func (a *admission) readRecord(ctx context.Context, t *task) (refused *result) {
	it := t.item
	if it.Attempt <= 1 && it.Record.ReceiveCount <= 1 && it.NotBefore == nil && !it.PossibleDuplicate {
		return nil
	}
	r, err := a.provider.ReadActivityRecord(ctx, it.ExecutionID, it.ActivityID)
	if err != nil {
		t.Log().ErrorContext(ctx, "activity record read failed, releasing the work item",
			"event", logevent.ActivityRecordReadFailed, "error", err)
		return &released
	}
	if refused = t.pendingBefore(ctx, &r); refused != nil {
		return refused
	}
	details, err := a.payloads.DecodeDetails(ctx, t, r.Details)
	if err != nil {
		t.Log().ErrorContext(ctx, "heartbeat details read failed, releasing the work item",
			"event", logevent.HeartbeatReadFailed, "error", err)
		return &released
	}
	t.setLastDetails(details)
	a.recorder.registered(ctx, t, &r)
	if r.InvocationTimeoutAttempt == it.Attempt {
		t.earlier.invocationTimeouts = r.InvocationTimeouts
	}
	return nil
}

// settled unblocks the tasks that wait for finished tasks. releasedIDs contains the records of released tasks.
func (a *admission) settled(b *batch, finished []finishedTask, releasedIDs []string) {
	for _, e := range finished {
		a.crashes.guard.EndTurn(e.task)
	}
	late := b.isLate(a.options.Clock())
	for _, e := range finished {
		b.keys.Pass(&e.task.key, late || slices.Contains(releasedIDs, e.task.item.Record.ID))
	}
	b.suspects.Done(len(finished))
}
