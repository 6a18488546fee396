package work

import (
	"context"
	"errors"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/body"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/provider"
)

// batch is the records that a worker was handed together, and what their activities have in common.
type batch struct {
	ctx context.Context //nolint:containedctx // every call for the batch is made with it, also those that a timer leads to
	// base is the parent of the activities' contexts. The manager ends those, with a reason; the end of ctx does not.
	base   context.Context //nolint:containedctx // the same
	ended  collector
	over   <-chan struct{} // closed when ctx ends; nil once the activities are told so
	worker *Worker
	// stopAt is when the activities are stopped since the invocation is about to end, lastAt when they are waited for no longer.
	// Zero: the invocation has no known end.
	stopAt, lastAt time.Time
	since          time.Time // when the invocation began
	line           line
	leased         chan struct{} // closed when the leases are taken of records that were delivered before

	// The manager's lock guards what follows.
	tasks []task
	// stopped is why no more activities begin.
	stopped *perdure.CancelledError
	beside  beside
}

// newBatch makes the tasks of an invocation that began at since.
func (w *Worker) newBatch(ctx context.Context, items []provider.LockedWorkItem, since time.Time) *batch {
	b := &batch{ctx: ctx, worker: w, since: since, over: ctx.Done(), tasks: make([]task, len(items))}
	b.ended.expect(len(items))
	b.stopAt, b.lastAt = w.lastMoments(ctx)
	b.base = body.Until(ctx, b.stopAt)
	for i := range items {
		t := &b.tasks[i]
		t.item, t.batch, t.index = &items[i], b, i
		t.cancels = items[i].Cancel
		t.lease.ours = items[i].Record.Hold == nil
		if mayBeOver(t.item) {
			t.looks = looksFor(ctx, b.tasks[:i], items[i].ExecutionID)
		}
	}
	waiting := lineUp(b.tasks)
	if b.line.busy = len(items) - waiting; waiting > 0 {
		leaseBehind(b.tasks, w.options.Clock().Add(w.options.LeaseAfter))
	}
	return b
}

// readCancels reads whether the activities of a batch are cancelled, if all of them would wait for one read before anything else. It reads
// here because the goroutine of each would first have to grow its stack for such a call.
func (b *batch) readCancels() {
	read := b.tasks[0].cancels
	for i := range b.tasks {
		if t := &b.tasks[i]; t.cancels != read || t.item.NeedsRunClaim() || t.item.NotBefore != nil {
			return
		}
	}
	read.Read()
}

// lastMoments returns when the activities of an invocation are stopped since it is about to end, and when they are waited for no longer.
// An invocation of seconds keeps at least three eighths of them for work.
func (w *Worker) lastMoments(ctx context.Context) (stopAt, lastAt time.Time) {
	end, ok := ctx.Deadline()
	if !ok {
		return stopAt, lastAt
	}
	left := end.Sub(w.options.Clock())
	kept := min(intake.Reserve, left/4)
	lastAt = end.Add(-kept)
	return lastAt.Add(-min(w.options.grace(), (left-kept)/2)), lastAt
}

// endOf says why the context of a batch has ended.
func endOf(ctx context.Context) *perdure.CancelledError {
	cause := context.Cause(ctx)
	reason := perdure.ReasonShutdown
	if errors.Is(cause, context.DeadlineExceeded) {
		reason = perdure.ReasonInvocationDeadline
	}
	return &perdure.CancelledError{Reason: reason, Message: cause.Error()}
}
