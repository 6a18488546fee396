package activities

import (
	"context"
	"time"

	"github.com/perdure/perdure/dispatch/internal/activitypayload"
	"github.com/perdure/perdure/dispatch/internal/body"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/dispatch/internal/isolation"
	"github.com/perdure/perdure/dispatch/internal/outcome"
	"github.com/perdure/perdure/dispatch/internal/workerreport"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/activityctx"
	"github.com/perdure/perdure/internal/goroutine"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/internal/settlements"
	"github.com/perdure/perdure/provider"
)

// Worker implements dispatch.Worker. It is safe for concurrent use.
type Worker struct {
	*intake.Base

	options    Options
	supervisor *supervisor
	admission  *admission
	settlement *settlement
	reporter   *workerreport.Reporter
	meter      *intake.Meter
	payloads   *activitypayload.Encoder
}

// NewWorker returns a worker. It makes no calls.
func NewWorker(r *registry.Registry, p provider.Provider, opts Options) *Worker {
	base := intake.NewBase(p, opts.Clock, opts.Logger)
	opts.Clock, opts.Logger = base.Clock, base.Logger
	w := &Worker{Base: base, options: opts}
	w.meter = intake.NewMeter(opts.Metrics, opts.HubName, intake.DimensionActivity, w.Base)
	w.options.setDefaults()
	w.reporter = workerreport.New(base, w.options.Queue, w.options.BuildID)
	w.payloads = activitypayload.New(opts.Codecs, p, opts.Clock)
	guard := isolation.NewGuard(w.Base)
	w.supervisor = newSupervisor(w, guard)
	cancels := &cancelCheck{options: &w.options, provider: p, supervisor: w.supervisor}
	crashes := &crashGuard{guard: guard, options: &w.options, provider: p}
	w.admission = &admission{
		options: &w.options, registry: r, provider: p, recorder: w.supervisor.recorder, payloads: w.payloads,
		interceptors: body.ChainOf(w.options.Logger, w.options.Interceptors),
		cancels:      cancels, crashes: crashes,
		settlements: settlements.NewCache(),
	}
	w.settlement = &settlement{base: w.Base, options: &w.options, supervisor: w.supervisor, crashes: crashes}
	return w
}

// AbandonedActivities implements dispatch.Worker.AbandonedActivities.
func (w *Worker) AbandonedActivities() int64 { return w.supervisor.abandoned.Load() }

// ReportStart implements dispatch.Worker.ReportStart.
func (w *Worker) ReportStart(ctx context.Context) error { return w.reporter.ReportStart(ctx) }

// HandleRecords implements dispatch.Worker.HandleRecords.
func (w *Worker) HandleRecords(ctx context.Context, records []provider.Record) (failed []string) {
	defer w.meter.Flush(ctx)
	startedAt := w.options.Clock()
	w.reporter.ReportIfDue(ctx)
	items, unreadable := w.Provider.DecodeWorkItems(ctx, records)
	notMoved := intake.DeadLetter(ctx, w.Base, w.options.Queue, unreadable)
	failed = intake.Abandon(ctx, w.Base, w.options.Queue, notMoved)
	if len(items) == 0 {
		return failed
	}
	return append(failed, w.runBatch(ctx, newBatch(ctx, w, items, startedAt))...)
}

// runBatch runs the activities of a batch concurrently, except those of one exclusive key, and settles each when it
// ends. It returns the IDs of the records that were not deleted.
func (w *Worker) runBatch(ctx context.Context, b *batch) (failed []string) {
	w.supervisor.enter(b)
	defer w.supervisor.exit(b)
	w.supervisor.leases.takeEarly(b)
	b.readCancels()
	for i := range b.tasks {
		go w.run(ctx, &b.tasks[i])
	}
	for finished := range b.results.All {
		stopWatching := b.watchContext()
		failedIDs := w.settlement.settle(ctx, finished, b.results.Done())
		failed = append(failed, failedIDs...)
		w.supervisor.settled(finished)
		w.admission.settled(b, finished, failedIDs)
		stopWatching()
	}
	return failed
}

// run runs an activity, if it is admitted, and adds its result to the batch even if the code ends the goroutine.
func (w *Worker) run(ctx context.Context, t *task) {
	goroutine.ReserveStack()
	ctx = activityctx.For(withTrace(ctx, t.item), activityHandle{t})
	if !w.admission.awaitKey(ctx, t) {
		t.finish(released)
		return
	}
	code, refused := w.admission.admit(ctx, t)
	if refused != nil {
		w.finishRefused(ctx, t, *refused)
		return
	}
	activityCtx, ok := w.supervisor.start(t)
	if !ok {
		t.finish(released)
		return
	}

	r, returned, startedAt := result{}, false, time.Time{} // startedAt is zero if metrics are off
	defer func() {
		if !returned {
			r.outcome = outcome.Of(t.item, body.Exited(t.item.Name))
		}
		w.meter.Since(intake.MetricActivityExecution, t.item.Name, startedAt)
		w.finish(ctx, t, r)
	}()
	startedAt = w.meter.Now()
	w.meter.Between(intake.MetricActivityScheduleToStart, t.item.Name, t.sentAt(), startedAt)
	//nolint:contextcheck // the supervisor ends the activity's context, not the end of ctx
	r, returned = w.execute(activityctx.ForCode(withTrace(activityCtx, t.item), activityHandle{t}), t, code), true
}

func (w *Worker) finishRefused(ctx context.Context, t *task, r result) {
	if o := r.outcome; o != nil && o.Error != nil && o.Error.Type != history.TypeCancelled {
		// an outcome with a run was stored by an earlier delivery, with the time of its retry
		if o.Error.Type == history.TypeInterrupted && o.Run == "" {
			r = w.addRetryTime(ctx, t, r)
			if o.RetryAt != nil && o.Ended != history.OutcomeAbandoned { // the last attempt reports the end
				o.Ended = ""
			}
		}
		w.count(t, r)
	}
	t.finish(r)
}

// finish adds the result of an activity whose code has returned. It ignores an abandoned activity, whose result was
// sent.
func (w *Worker) finish(ctx context.Context, t *task, r result) {
	if !w.supervisor.end(t) {
		t.Log().InfoContext(ctx, "abandoned activity returned, ignoring its result",
			"event", logevent.ActivityAbandonedReturned)
		return
	}
	t.cancel(nil)
	t.mayStillRun = t.timedOut
	stopped := t.stop.reason
	if t.becomesPending(r) {
		w.finishPending(ctx, t, r)
		return
	}
	if stopped != nil {
		w.logEnd(ctx, t, r)
	}

	if r = t.resultOf(r); r.release {
		w.supervisor.heartbeats.flush(ctx, t)
		r = w.supervisor.countTimeout(ctx, t, true)
	}
	r = t.withEarlierEnd(r)
	switch {
	case stopped == nil, r.outcome != nil && isWorkerReason(stopped.Reason):
		r = w.addRetryTime(ctx, t, r)
	case !r.release:
		w.supervisor.recorder.cancelEnd(ctx, t, t.stop.at, r.cancelOutcome())
		r = t.withEnd(r, history.OutcomeReturned, t.stop.at)
	default:
		t.Log().WarnContext(ctx, "activity stopped by its worker, releasing the work item",
			"event", logevent.ActivityStopped, "attemptCount", t.item.Record.ReceiveCount,
			"reason", string(stopped.Reason), "message", stopped.Message, "ranFor", w.options.Clock().Sub(t.startedAt))
	}
	w.count(t, r)
	t.finish(r)
}

func (w *Worker) count(t *task, r result) {
	switch reason := t.stop.reason; {
	case reason != nil && !isWorkerReason(reason.Reason):
		w.meter.Count(intake.MetricActivitiesCancelled, t.item.Name, 1)
	case r.outcome == nil || r.outcome.Error == nil:
	case r.outcome.RetryAt != nil:
		w.meter.Count(intake.MetricActivitiesRetried, t.item.Name, 1)
	default:
		w.meter.Count(intake.MetricActivitiesFailed, t.item.Name, 1)
	}
}

// logEnd logs how an activity ended after its context had ended. It logs a panic as well, because nothing else may
// report the panic.
func (w *Worker) logEnd(ctx context.Context, t *task, r result) {
	reason := t.stop.reason
	attrs := []any{
		"reason", string(reason.Reason), "end", string(r.cancelOutcome()),
		"endedAfter", w.options.Clock().Sub(t.stop.at),
	}
	switch {
	case r.outcome != nil && r.outcome.Error != nil && isCrash(r.outcome.Error.Type):
		t.Log().WarnContext(ctx, "activity panicked after its context ended", append(attrs,
			"event", logevent.ActivityCleanupPanicked, "error", w.options.textOf(r.outcome.Error))...)
	case !isWorkerReason(reason.Reason): // otherwise the release of the work item is logged
		t.Log().InfoContext(ctx, "cancelled activity ended within its grace period", append(attrs,
			"event", logevent.ActivityCancelledEnded)...)
	}
}

// isCrash reports whether a failure is a bug of the code, and not an error that it returned.
func isCrash(failureType string) bool {
	return failureType == history.TypePanic || failureType == history.TypeGoexit
}
