package activities

import (
	"context"
	"errors"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/body"
	"github.com/perdure/perdure/dispatch/internal/collector"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/dispatch/internal/isolation"
	"github.com/perdure/perdure/dispatch/internal/keyorder"
	"github.com/perdure/perdure/internal/settlements"
	"github.com/perdure/perdure/provider"
)

// batch holds the records of one call of HandleRecords.
type batch struct {
	ctx context.Context //nolint:containedctx // for all calls of the batch, including those that a timer starts
	// activityCtx is the parent of the contexts of activities. It does not end with ctx: the supervisor ends the
	// contexts with a reason.
	activityCtx context.Context //nolint:containedctx // as above
	results     collector.Collector[finishedTask]
	worker      *Worker
	// The activities are stopped at stopAt and abandoned at abandonAt, because the invocation ends. Both times are zero
	// if ctx has no deadline.
	stopAt, abandonAt time.Time
	startedAt         time.Time
	suspects          isolation.Queue
	keys              keyorder.Order
	leased            chan struct{} // closed when the leases of redelivered records were taken; nil if there are none

	// The supervisor's lock guards the following fields.
	tasks []task
	// stopReason is the reason for which no more activities start. It is nil while activities may start.
	stopReason *perdure.CancelledError
	background background
}

func newBatch(ctx context.Context, w *Worker, items []provider.LockedWorkItem, startedAt time.Time) *batch {
	b := &batch{ctx: ctx, worker: w, startedAt: startedAt, tasks: make([]task, len(items))}
	b.results.Init(len(items), byIndex, ctx.Done(), b)
	b.stopAt, b.abandonAt = w.options.endTimes(ctx)
	b.activityCtx = body.Until(ctx, b.stopAt)
	for i := range items {
		t := &b.tasks[i]
		t.item, t.batch, t.index = &items[i], b, i
		t.cancelRead = items[i].Cancel
		t.lease.owned = items[i].Record.Hold == nil
		if mayHaveEnded(t.item) {
			t.settledRead = sharedReadOf(ctx, b.tasks[:i], items[i].ExecutionID)
		}
	}
	b.keys.Init(&b.suspects)
	waiting := linkKeys(b.tasks, w.options.Clock().Add(w.options.LeaseAfter))
	b.suspects.AddBusy(len(items) - waiting)
	return b
}

// sharedReadOf returns the read that a task shares with an earlier task of the same execution, or a new read.
func sharedReadOf(ctx context.Context, earlier []task, executionID string) *settlements.SharedRead {
	for i := range earlier {
		if earlier[i].settledRead != nil && earlier[i].item.ExecutionID == executionID {
			return earlier[i].settledRead
		}
	}
	return settlements.NewSharedRead(ctx)
}

// readCancels reads the cancel record if all tasks would first wait for the same read. The batch's goroutine makes the
// call, because each task's goroutine would have to grow its stack for the call.
func (b *batch) readCancels() {
	read := b.tasks[0].cancelRead
	for i := range b.tasks {
		if t := &b.tasks[i]; t.cancelRead != read || t.item.NeedsRunClaim() || t.item.NotBefore != nil {
			return
		}
	}
	read.Read()
}

// endTimes returns the times at which the activities of an invocation are stopped and abandoned. At least three eighths
// of a short invocation remain for the activities.
func (o *Options) endTimes(ctx context.Context) (stopAt, abandonAt time.Time) {
	end, ok := ctx.Deadline()
	if !ok {
		return stopAt, abandonAt
	}
	left := end.Sub(o.Clock())
	reserve := min(intake.Reserve, left/4)
	abandonAt = end.Add(-reserve)
	return abandonAt.Add(-min(o.gracePeriod(), (left-reserve)/2)), abandonAt
}

// ContextEnded stops the activities because the batch's context has ended. It implements collector.Batch.
func (b *batch) ContextEnded() { b.worker.supervisor.stopAll(b, endReason(b.ctx)) }

// watchContext stops the running activities if the batch's context ends while results of others are sent. Most batches
// have no running activities then, and need no watch.
func (b *batch) watchContext() (stop func() bool) {
	if b.results.Running() == 0 || b.results.Notified() {
		return func() bool { return true }
	}
	return context.AfterFunc(b.ctx, b.ContextEnded)
}

func endReason(ctx context.Context) *perdure.CancelledError {
	cause := context.Cause(ctx)
	reason := perdure.ReasonShutdown
	if errors.Is(cause, context.DeadlineExceeded) {
		reason = perdure.ReasonInvocationDeadline
	}
	return &perdure.CancelledError{Reason: reason, Message: cause.Error()}
}
