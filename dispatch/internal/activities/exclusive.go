package activities

import (
	"time"

	"github.com/perdure/perdure/dispatch/internal/keyorder"
)

// linkKeys orders the tasks of a batch by their exclusive keys, and returns the number of tasks that wait for another
// task. The lease of a waiting task is taken at leaseAt, together with the lease of the first task of the key.
func linkKeys(tasks []task, leaseAt time.Time) (waiting int) {
	place := func(t *task) *keyorder.Place { return &t.key }
	group := func(t *task) string { return t.item.Record.Group }
	waiting = keyorder.Link(tasks, place, group, (*task).needsMarker)
	if waiting == 0 {
		return 0
	}
	for i := range tasks {
		if t := &tasks[i]; t.lease.owned && t.key.IsWaiting() {
			t.lease.schedule(leaseAt)
		}
	}
	return waiting
}

// maxLock is the maximum time for which a record may be locked after its receive, a quota of SQS.
const maxLock = 12 * time.Hour

// isLate reports whether a batch is in the second half of its time, in which no waiting task starts. An activity that
// takes half of the time would be interrupted and repeated. Instead, the activity runs first in a later batch.
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

// resendAfter returns the number of deliveries after which a released task is resent. A negative number means never.
func (o *Options) resendAfter(t *task) int {
	if t.item.ExclusiveKey != "" && !t.key.WasReleased() {
		return min(o.ResendAfterDeliveries, maxResendAfterDeliveries)
	}
	return o.ResendAfterDeliveries
}
