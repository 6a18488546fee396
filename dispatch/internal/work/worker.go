// Package work processes work items: it runs their activities.
package work

import (
	"context"
	"time"

	"github.com/perdure/perdure/dispatch/internal/body"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/goroutine"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/vault"
	"github.com/perdure/perdure/provider"
)

// Worker implements dispatch.Worker.
type Worker struct {
	base       intake.Base
	options    Options
	provider   provider.Provider
	manager    *manager
	admission  *admission
	settlement *settlement
	reporter   *reporter
	meter      *intake.Meter
	vault      *vault.Vault // nil: payloads are as the code gives them
}

// Leaked implements dispatch.Worker.AbandonedActivities.
func (w *Worker) Leaked() int64 { return w.manager.leaked.Load() }

// HandleRecords implements dispatch.Worker.HandleRecords.
func (w *Worker) HandleRecords(ctx context.Context, records []provider.Record) (failed []string) {
	defer w.meter.Flush(ctx)
	since := w.options.Clock()
	w.reporter.atWork(ctx)
	items, unreadable := w.provider.DecodeWorkItems(ctx, records)
	failed = intake.Abandon(ctx, &w.base, w.options.Queue, intake.DeadLetter(ctx, &w.base, w.options.Queue, unreadable))
	if len(items) == 0 {
		return failed
	}
	return append(failed, w.serve(ctx, w.newBatch(ctx, items, since))...)
}

// serve runs the activities of a batch side by side, those of one exclusive key one after the other.
func (w *Worker) serve(ctx context.Context, b *batch) (failed []string) {
	w.manager.enter(b)
	defer w.manager.exit(b)
	w.manager.leases.takeEarly(b)
	b.readCancels()
	for i := range b.tasks {
		go w.run(ctx, &b.tasks[i])
	}
	for ends := range b.results {
		release := b.watched()
		back := w.settlement.settle(ctx, ends, b.ended.over())
		failed = append(failed, back...)
		w.manager.release(ends)
		w.admission.sent(b, ends, back)
		release()
	}
	return failed
}

// run runs an activity, if it is to be run, and collects its result, whatever ends the goroutine.
func (w *Worker) run(ctx context.Context, t *task) {
	goroutine.ReserveStack()
	ctx = withInfo(ctx, t)
	if !w.admission.awaitKey(ctx, t) {
		t.batch.ended.add(finished{t, result{back: true}})
		return
	}
	run, hindered := w.admission.admit(ctx, t)
	if hindered != nil {
		w.hindered(ctx, t, *hindered)
		return
	}
	activity, ok := w.manager.begin(t)
	if !ok {
		t.batch.ended.add(finished{t, result{back: true}})
		return
	}

	r, returned, began := result{}, false, time.Time{} // began: where that is measured
	defer func() {
		if !returned {
			r.outcome = vanished(t.item)
		}
		w.meter.Since(intake.MetricActivityExecution, t.item.Name, began)
		w.finish(ctx, t, r)
	}()
	began = w.meter.Now()
	w.meter.Between(intake.MetricActivityScheduleToStart, t.item.Name, t.sentAt(), began)
	r, returned = run.run(forCode(activity, t), t), true //nolint:contextcheck // ctx's end does not end it: the manager does
}

// hindered collects the result of an activity whose code is not run here.
func (w *Worker) hindered(ctx context.Context, t *task, r result) {
	if o := r.outcome; o != nil && o.Error != nil && o.Error.Type != history.TypeCancelled {
		if o.Error.Type == history.TypeInterrupted && o.Run == "" { // else it was kept, with when it is tried again
			r = w.retried(ctx, t, r)
			if o.RetryAt != nil && o.Ended != history.OutcomeAbandoned { // how the activity ends is for its last attempt to say
				o.Ended = ""
			}
		}
		w.count(t, r)
	}
	t.batch.ended.add(finished{t, r})
}

// finish collects the result of an activity, unless the activity was given up: then its result is sent already.
func (w *Worker) finish(ctx context.Context, t *task, r result) {
	if !w.manager.end(t) {
		t.log().InfoContext(ctx, "abandoned activity returned, ignoring its result",
			"event", logevent.ActivityAbandonedReturned)
		return
	}
	t.cancel(nil)
	t.leaked = t.abandoned
	stopped := t.stop.why
	if t.handsOver(r) {
		w.handOver(ctx, t, r)
		return
	}
	if stopped != nil {
		w.logEnd(ctx, t, r)
	}

	if r = t.resultOf(r); r.back {
		w.manager.writer.flush(ctx, t)
		r = w.manager.writer.countRunOut(ctx, t, true)
	}
	r = t.endedBefore(r)
	switch {
	case stopped == nil, r.outcome != nil && onlyOfWorkers(stopped.Reason):
		r = w.retried(ctx, t, r)
	case !r.back:
		w.manager.records.end(ctx, t, t.stop.at, r.end())
		r = t.endedAs(r, history.OutcomeReturned, t.stop.at)
	default:
		t.log().WarnContext(ctx, "activity stopped by its worker, releasing the work item",
			"event", logevent.ActivityStopped, "attemptCount", t.item.Record.ReceiveCount,
			"reason", string(stopped.Reason), "message", stopped.Message, "ranFor", w.options.Clock().Sub(t.began))
	}
	w.count(t, r)
	t.batch.ended.add(finished{t, r})
}

// count counts how the run of an activity ended.
func (w *Worker) count(t *task, r result) {
	switch why := t.stop.why; {
	case why != nil && !onlyOfWorkers(why.Reason):
		w.meter.Count(intake.MetricActivitiesCancelled, t.item.Name, 1)
	case r.outcome == nil || r.outcome.Error == nil:
	case r.outcome.RetryAt != nil:
		w.meter.Count(intake.MetricActivitiesRetried, t.item.Name, 1)
	default:
		w.meter.Count(intake.MetricActivitiesFailed, t.item.Name, 1)
	}
}

// vanished is the outcome of an activity that ended its goroutine.
func vanished(it *provider.LockedWorkItem) *provider.ActivityOutcome {
	return &provider.ActivityOutcome{ActivityID: it.ActivityID, Attempt: it.Attempt, Error: body.Vanished(it.Name)}
}

// logEnd logs how an activity came to its end by itself, after its context had ended. A panic then is as much of a mistake as any other,
// and nothing else may show its failure.
func (w *Worker) logEnd(ctx context.Context, t *task, r result) {
	why := t.stop.why
	about := []any{"reason", string(why.Reason), "end", string(r.end()), "endedAfter", w.options.Clock().Sub(t.stop.at)}
	switch {
	case r.outcome != nil && r.outcome.Error != nil && isCrash(r.outcome.Error.Type):
		t.log().WarnContext(ctx, "activity panicked after its context ended", append(about,
			"event", logevent.ActivityCleanupPanicked, "error", w.textOf(r.outcome.Error))...)
	case !onlyOfWorkers(why.Reason): // else another line says that it is tried again
		t.log().InfoContext(ctx, "cancelled activity ended within its grace period", append(about,
			"event", logevent.ActivityCancelledEnded)...)
	}
}

// textOf is what the log may show of an activity's failure.
func (w *Worker) textOf(f *history.Failure) string {
	if w.options.OmitErrorTexts {
		return "of type " + f.Type
	}
	return f.Message
}

// isCrash reports whether a failure is a mistake of the code, and no error that it returned.
func isCrash(failureType string) bool {
	return failureType == history.TypePanic || failureType == history.TypeGoexit
}

// Announce implements dispatch.Worker.ReportStart.
func (w *Worker) Announce(ctx context.Context) error {
	return w.reporter.announce(ctx)
}
