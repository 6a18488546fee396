package work

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/standings"
	"github.com/perdure/perdure/provider"
)

// The outcome of an activity that is delivered again may have been sent before: the worker died between sending it and deleting the
// record, or the record could not be deleted; and of a work item that was sent again another copy may have run. So before the code runs
// the worker reads history, strongly consistent, whether the activity is still open, and of one that is retried, whether the attempt is
// the current one. A first delivery of a first attempt costs nothing.

// mayBeOver reports whether an activity may have ended before this delivery, or its attempt have had a successor.
func mayBeOver(it *provider.LockedWorkItem) bool {
	return it.Record.ReceiveCount > 1 || it.Attempt > 1 || it.PossibleDuplicate || it.NotBefore != nil
}

// isOver reports whether an activity has ended, or its attempt is not the current one. Where history cannot be read it has not.
func (a *admission) isOver(ctx context.Context, t *task) (over bool, err error) {
	it := t.item
	if !mayBeOver(it) {
		return false, nil
	}
	over, deleted, err := t.looks.of(ctx, a.standings, a.provider, &it.WorkItem)
	if errors.Is(err, provider.ErrCorrupt) {
		t.log().WarnContext(ctx, "history unreadable, running the redelivered activity",
			"event", logevent.ActivityRedeliveryUnchecked, "error", err)
		err = nil
	}
	if deleted {
		t.stop.isDeleted()
	}
	if over || err != nil || it.Retry == nil {
		return over, err
	}

	current, err := a.provider.ReadRetry(ctx, it.ExecutionID, it.ActivityID)
	t.past.ended(current.Ended)
	return err == nil && current.Attempt > 0 && current.Attempt != it.Attempt, err
}

// look is one look at what an execution has settled, for all tasks of a batch that are to begin.
type look struct {
	ctx   context.Context //nolint:containedctx // of the batch, whichever task comes first
	begun atomic.Bool
	done  chan struct{}
	err   error
}

// looksFor is the look that a task shares with those before it that may be over, too.
func looksFor(ctx context.Context, before []task, executionID string) *look {
	for i := range before {
		if before[i].looks != nil && before[i].item.ExecutionID == executionID {
			return before[i].looks
		}
	}
	return newLook(ctx)
}

func newLook(ctx context.Context) *look { return &look{ctx: ctx, done: make(chan struct{})} }

// of looks, or waits for the task that does, and reports whether an activity has ended, or is being ended.
func (l *look) of(ctx context.Context, s *standings.Standings, p provider.Provider, it *provider.WorkItem) (over, deleted bool, err error) {
	x := s.Of(it.ExecutionID)
	if over, deleted, _ = standingOf(x, it); over {
		return over, deleted, nil // it stays over
	}
	if l.begun.CompareAndSwap(false, true) {
		l.err = x.Look(l.ctx, p, it.Segment) //nolint:contextcheck // that of the batch
		close(l.done)
	} else {
		<-l.done
	}
	err = l.err
	over, deleted, known := standingOf(x, it)
	if err == nil && !known { // the task that has looked is of a later segment
		err = x.Look(ctx, p, it.Segment)
		over, deleted, _ = standingOf(x, it)
	}
	return over, deleted, err
}

// standingOf is what is known of an activity.
func standingOf(x *standings.Standing, it *provider.WorkItem) (over, deleted, known bool) {
	k := x.Of(it.ActivityID, it.Segment)
	return k.Over || k.Settled || !it.WaitForCancellation && k.Cancelled, k.Deleted, k.Read
}
