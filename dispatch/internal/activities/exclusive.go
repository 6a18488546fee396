package activities

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure/dispatch/internal/isolation"
	"github.com/perdure/perdure/provider"
)

// keyOrder runs the tasks of one exclusive key in a batch one after another (R29). They are the records of one message
// group. A task starts when the record before it is deleted or sent again. If that record was released, all later ones
// of its key are released too, because a FIFO queue preserves their order.
type keyOrder struct {
	mu       sync.Mutex
	suspects *isolation.Queue // is notified when a waiting task starts
}

// keyPlace is the place of a task among those with its key. The lock of keyOrder guards it.
type keyPlace struct {
	next *task // nil if there is none
	// turn is closed when it is decided whether the task may start, or nil for the first one of a key.
	turn              chan struct{}
	decided, released bool
	// waiting is true until then. It is atomic because the supervisor, which has its own lock, reads it.
	waiting atomic.Bool
	// doubtful is true if a task of the key may crash the process.
	doubtful bool
}

// orderByKey sets the places of the tasks of a batch, and returns how many wait for another one.
func orderByKey(tasks []task) (waiting int) {
	if tasks[0].item.Record.Group == "" {
		return 0
	}
	last := map[string]*task{}
	doubtful := map[string]bool{}
	for i := range tasks {
		t := &tasks[i]
		group := t.item.Record.Group
		doubtful[group] = doubtful[group] || t.needsMarker()
		if previous := last[group]; previous != nil {
			previous.key.next = t
			t.key.turn = make(chan struct{})
			t.key.waiting.Store(true)
			waiting++
		}
		last[group] = t
	}
	for i := range tasks {
		tasks[i].key.doubtful = doubtful[tasks[i].item.Record.Group]
	}
	return waiting
}

// scheduleWaitingLeases sets when the leases of waiting tasks are taken: with that of the first task of the key.
func scheduleWaitingLeases(tasks []task, at time.Time) {
	for i := range tasks {
		if t := &tasks[i]; t.lease.owned && t.key.isWaiting() {
			t.lease.schedule(at)
		}
	}
}

// isWaiting reports whether the task waits for another one of its key.
func (p *keyPlace) isWaiting() bool { return p.waiting.Load() }

// wasReleased reports whether the task was released because an earlier one of its key was.
func (p *keyPlace) wasReleased() bool { return p.released }

// await waits for the earlier tasks of a key. It returns false if the task must be released.
func (o *keyOrder) await(ctx context.Context, t *task) bool {
	select {
	case <-t.key.turn:
	case <-ctx.Done():
		o.mu.Lock()
		if !t.key.decided {
			o.decide(t, true)
		}
		o.mu.Unlock()
	}
	return !t.key.released
}

// decide ends the wait of a task. The lock is held.
func (o *keyOrder) decide(t *task, release bool) {
	p := &t.key
	p.decided, p.released = true, release
	p.waiting.Store(false)
	o.suspects.AddBusy(1)
	close(p.turn)
}

// pass lets the next task of a key start after each finished one. If the finished record was released, or the batch is
// late, the later tasks of the key are released.
func (o *keyOrder) pass(finished []finishedTask, releasedIDs []string, late bool) {
	for _, e := range finished {
		o.passOne(e.task, late || slices.Contains(releasedIDs, e.task.item.Record.ID))
	}
}

func (o *keyOrder) passOne(t *task, release bool) {
	if t.key.next == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for next := t.key.next; next != nil; next = next.key.next {
		if !next.key.decided {
			o.decide(next, release)
		}
		if !release {
			return
		}
	}
}

// maxLock is the maximum time for which a record may be locked after its receive, a quota of SQS.
const maxLock = 12 * time.Hour

// isLate reports whether a batch is in the second half of its time, in which no waiting task starts. An activity that
// takes half of the time would be interrupted and repeated. Instead, it is the first one in a later batch.
func (b *batch) isLate(now time.Time) bool {
	end := b.stopAt
	if end.IsZero() {
		end = b.startedAt.Add(maxLock)
	}
	return now.Sub(b.startedAt) > end.Sub(now)
}

// maxResendAfterDeliveries is the maximum of Options.ResendAfterDeliveries for the first record of a key, which blocks
// the others. After the ten deliveries that it may have spent behind others, it retries for about twenty minutes.
const maxResendAfterDeliveries = 14

// resendAfter returns the delivery from which on a released task is sent again. It is negative for never.
func (o *Options) resendAfter(t *task) int {
	if t.item.ExclusiveKey != "" && !t.key.wasReleased() {
		return min(o.ResendAfterDeliveries, maxResendAfterDeliveries)
	}
	return o.ResendAfterDeliveries
}

const typeExclusivePending = "ExclusivePendingError"

// exclusivePending returns the failure of an activity with an exclusive key that returned perdure.ErrPending. Deleting
// its record would start the next activity of the key while the token holder continues.
func exclusivePending(it *provider.LockedWorkItem) *failure {
	return &failure{Type: typeExclusivePending, NonRetryable: true, Message: "activity " + it.Name +
		" returned ErrPending, which activities with an exclusive key do not support; " +
		"call it without the key, or send the token from another activity"}
}
