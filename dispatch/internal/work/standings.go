package work

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/perdure/perdure/provider"
)

// The outcome of an activity that is delivered again may have been sent before: the worker died between sending it and deleting the
// record, or the record could not be deleted; and of a work item that was sent again another copy may have run. So before the code runs
// the worker reads history, strongly consistent, whether the activity is still open, and of one that is retried, whether the attempt is
// the current one. A first delivery of a first attempt costs nothing.

// mayBeOver reports whether an activity may have ended before this delivery, or its attempt have had a successor.
func mayBeOver(it *provider.LockedWorkItem) bool {
	return it.Record.ReceiveCount > 1 || it.Attempt > 1 || it.Again || it.NotBefore != nil
}

// isOver reports whether an activity has ended, or its attempt is not the current one. Where history cannot be read it has not.
func (a *admission) isOver(ctx context.Context, t *task) (over bool, err error) {
	it := t.item
	if !mayBeOver(it) {
		return false, nil
	}
	over, deleted, err := t.looks.of(ctx, a.standings, a.provider, &it.WorkItem)
	if errors.Is(err, provider.ErrCorrupt) {
		t.log().WarnContext(ctx, "it cannot be read whether an activity has ended that is delivered again, it runs", "error", err)
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

// standingsKept is of how many executions a worker remembers what they have settled.
const standingsKept = 64

// standings remember what executions have settled, so that ten thousand activities of one that come again do not each read its
// history. Each look reads what was committed since the last.
type standings struct {
	mu    sync.Mutex
	order list.List // of *standing; front: the most recent
	by    map[string]*list.Element
}

func newStandings() *standings { return &standings{by: map[string]*list.Element{}} }

// standing is what is known of one execution.
type standing struct {
	executionID string

	mu            sync.Mutex // not held while the provider is called
	known         bool
	first, next   int64 // the segments that were read: from first up to before next
	settled       provider.IDSet
	cancelled     provider.IDSet
	over, deleted bool
}

func (s *standings) of(executionID string) *standing {
	s.mu.Lock()
	defer s.mu.Unlock()
	el := s.by[executionID]
	if el == nil {
		el = s.order.PushFront(&standing{executionID: executionID})
		s.by[executionID] = el
		if s.order.Len() > standingsKept {
			last, _ := s.order.Remove(s.order.Back()).(*standing)
			delete(s.by, last.executionID)
		}
	}
	s.order.MoveToFront(el)
	x, _ := el.Value.(*standing)
	return x
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
func (l *look) of(ctx context.Context, s *standings, p provider.Provider, it *provider.WorkItem) (over, deleted bool, err error) {
	x := s.of(it.ExecutionID)
	if over, deleted, _ = x.of(it); over {
		return over, deleted, nil // it stays over
	}
	if l.begun.CompareAndSwap(false, true) {
		l.err = x.read(l.ctx, p, it.Segment) //nolint:contextcheck // that of the batch
		close(l.done)
	} else {
		<-l.done
	}
	err = l.err
	over, deleted, known := x.of(it)
	if err == nil && !known { // the task that has looked is of a later segment
		err = x.read(ctx, p, it.Segment)
		over, deleted, _ = x.of(it)
	}
	return over, deleted, err
}

// of is what is known of an activity.
func (x *standing) of(it *provider.WorkItem) (over, deleted, known bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	over = x.over || x.settled.Has(it.ActivityID) || !it.WaitCancel && x.cancelled.Has(it.ActivityID)
	return over, x.deleted, x.known && it.Segment >= x.first
}

// read reads on from where the last look ended, or from a segment that is before all those that were read.
func (x *standing) read(ctx context.Context, p provider.Provider, segment int64) error {
	x.mu.Lock()
	from, first := x.next, !x.known || segment < x.first
	if first {
		from = segment
	}
	x.mu.Unlock()
	got, err := p.ReadSettled(ctx, x.executionID, from)
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if first && got.Next == from { // the segment that scheduled the activity is gone
		got.Over, got.Deleted = true, true
	}
	if first && (!x.known || from < x.first) {
		x.first = from
	}
	for _, r := range got.IDs {
		x.settled = x.settled.Add(r)
	}
	for _, r := range got.Cancelled {
		x.cancelled = x.cancelled.Add(r)
	}
	x.known, x.next = true, max(x.next, got.Next)
	x.over, x.deleted = x.over || got.Over, x.deleted || got.Deleted
	return nil
}
