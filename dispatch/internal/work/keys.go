package work

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Records of one message group, which are the activities of one exclusive key, run one after the other, in their order (R29). Each begins once the
// record before it is done with: deleted, or sent anew. Where that went back those behind it go back too, as the order of a FIFO queue wants it.

// place is a task's place among those of its key in a batch. The line's lock guards it.
type place struct {
	// behind is the next of its key; nil where there is none.
	behind *task
	// turn is closed when it is known whether the task may begin; nil where nothing is ahead of it. came: it is closed. back: the task is to go back.
	turn       chan struct{}
	came, back bool
	// waits: it is not closed. It is for the manager, which has another lock.
	waits atomic.Bool
	// doubtful: one of its key in the batch was delivered before, and may be what kills.
	doubtful bool
}

// lineUp gives the tasks of a batch their places, and returns how many wait behind another.
func lineUp(tasks []task) (waiting int) {
	if tasks[0].item.Record.Group == "" {
		return 0
	}
	last := map[string]*task{}
	doubtful := map[string]bool{}
	for i := range tasks {
		t := &tasks[i]
		group := t.item.Record.Group
		doubtful[group] = doubtful[group] || t.doubtful()
		if ahead := last[group]; ahead != nil {
			ahead.place.behind = t
			t.place.turn = make(chan struct{})
			t.place.waits.Store(true)
			waiting++
		}
		last[group] = t
	}
	for i := range tasks {
		tasks[i].place.doubtful = doubtful[tasks[i].item.Record.Group]
	}
	return waiting
}

// leaseBehind says when the leases of those are taken that wait for their key: with that of the first, which is about to begin.
func leaseBehind(tasks []task, at time.Time) {
	for i := range tasks {
		if t := &tasks[i]; t.lease.ours && t.place.isBehind() {
			t.lease.begin(at)
		}
	}
}

// isBehind reports whether a task waits for one of its key.
func (p *place) isBehind() bool { return p.waits.Load() }

// awaitKey waits until those of its key are done with that are ahead of a task, and reports whether it may begin.
func (a *admission) awaitKey(ctx context.Context, t *task) bool {
	p := &t.place
	if p.turn == nil {
		return true
	}
	select {
	case <-p.turn:
	case <-ctx.Done():
		t.batch.line.giveUpPlace(t)
	}
	if p.back {
		return false
	}
	a.lookAgain(ctx, t)
	return true
}

// giveUpPlace has a task go back, unless its turn has come.
func (l *line) giveUpPlace(t *task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !t.place.came {
		l.come(t, true)
	}
}

// come ends a task's wait for its key.
func (l *line) come(t *task, back bool) {
	p := &t.place
	p.came, p.back = true, back
	p.waits.Store(false)
	l.joins()
	close(p.turn)
}

// pass has the task behind another begin, or all that are behind it go back.
func (l *line) pass(t *task, back bool) {
	if t.place.behind == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for next := t.place.behind; next != nil; next = next.place.behind {
		if !next.place.came {
			l.come(next, back)
		}
		if !back {
			return
		}
	}
}

// wentBack reports whether a task went back since one of its key did.
func (p *place) wentBack() bool { return p.back }

// passOn has those go on, or back, that are behind tasks whose results are sent.
func (a *admission) passOn(b *batch, ends []finished, failed []string) {
	late := b.isLate(a.options.Clock())
	for _, e := range ends {
		b.line.pass(e.task, late || slices.Contains(failed, e.task.item.Record.ID))
	}
}

// longestLock is how long a record may be locked from its receive on: SQS's quota.
const longestLock = 12 * time.Hour

// isLate reports whether a batch is in the second half of its time, in which nothing begins that was behind another: an activity that takes half of an
// invocation, or of the longest lock of a process that polls, would be cut off then, and run again. It goes back at once, and is the first of its next batch.
func (b *batch) isLate(now time.Time) bool {
	end := b.stopAt
	if end.IsZero() {
		end = b.since.Add(longestLock)
	}
	return now.Sub(b.since) > end.Sub(now)
}

// atOnce makes a record that went back behind another visible at once: its queue delivers nothing of the key before that other is visible.
func atOnce(*provider.Record) time.Duration { return 0 }

// exclusivePending is the failure of an activity with an exclusive key that has returned perdure.ErrPending. Its record would be deleted then, and
// the next of its key begin, while whoever has the token goes on.
func exclusivePending(it *provider.LockedWorkItem) *history.Failure {
	return &history.Failure{Type: typeExclusivePending, NonRetryable: true, Message: "activity " + it.Name +
		" returned ErrPending, which activities with an exclusive key do not support; " +
		"call it without the key, or send the token from another activity"}
}

const typeExclusivePending = "ExclusivePendingError"

// sendKeyAnewAfter is SendAnewAfter where a record is the first of its key, which it keeps from the others: from ten deliveries on, through which it may have
// come behind others, it has some twenty minutes more.
const sendKeyAnewAfter = 14

// anewAfter is from which delivery on a task that goes back is sent anew; negative: never.
func (s *settlement) anewAfter(t *task) int {
	after := s.options.ResendAfterDeliveries
	if t.item.ExclusiveKey != "" && !t.place.wentBack() {
		return min(after, sendKeyAnewAfter)
	}
	return after
}

// mayNotHop reports whether a work item may not be sent again for being early: its queue delays nothing, and takes the same for a repeat.
func mayNotHop(it *provider.LockedWorkItem) bool { return it.ExclusiveKey != "" }
