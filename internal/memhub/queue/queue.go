// Package queue is a queue in memory, with receipt handles and visibility timeouts like SQS.
package queue

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/perdure/perdure/provider"
)

const (
	// batchSize is the maximum number of records that are received at once.
	batchSize = 10
	// dedupTime is the time for which a FIFO queue drops repetitions.
	dedupTime = 5 * time.Minute
)

// Queue is a queue that delivers each record until it is deleted.
type Queue struct {
	// fifo is true if the queue delivers the records of a group in order, and drops repetitions.
	fifo       bool
	visibility time.Duration
	Dead       *Queue // nil for a dead-letter queue

	Records []*Stored // in the order in which they were sent
	sent    int
	dedup   map[string]time.Time // the time until which a repetition is dropped
}

// Stored is a record in a queue. Its receipt handle belongs to the last delivery.
type Stored struct {
	provider.Record

	VisibleAt time.Time
}

// New returns an empty queue with a dead-letter queue.
func New(fifo bool, visibility time.Duration) *Queue {
	return &Queue{fifo: fifo, visibility: visibility, Dead: &Queue{fifo: fifo, visibility: visibility}}
}

// Send adds a record. A FIFO queue drops a repetition, which is a record with the same non-empty dedup.
func (q *Queue) Send(now, visibleAt time.Time, group, body, dedup string) {
	if q.fifo && dedup != "" {
		if now.Before(q.dedup[dedup]) {
			return
		}
		if q.dedup == nil {
			q.dedup = map[string]time.Time{}
		}
		q.dedup[dedup] = now.Add(dedupTime)
	}
	q.sent++
	r := provider.Record{ID: fmt.Sprintf("m%d-%p", q.sent, q), Body: body, SentAt: now}
	if q.fifo {
		r.Group, r.Sequence = group, strconv.Itoa(q.sent)
	}
	q.Records = append(q.Records, &Stored{Record: r, VisibleAt: visibleAt})
}

// Receive receives visible records and locks them. It skips groups with a locked record.
func (q *Queue) Receive(now time.Time) (received []provider.Record) {
	locked := map[string]bool{}
	for _, r := range q.Records {
		switch {
		case len(received) == batchSize:
			return received
		case r.VisibleAt.After(now):
			locked[r.Group] = q.fifo
		case !locked[r.Group]:
			r.ReceiveCount++
			r.ReceiptHandle = fmt.Sprintf("%s.%d", r.ID, r.ReceiveCount)
			r.VisibleAt = now.Add(q.visibility)
			received = append(received, r.Record)
		}
	}
	return received
}

// Locked returns the record with a receipt handle if its lock has not expired, or nil.
func (q *Queue) Locked(now time.Time, handle string) *Stored {
	for _, r := range q.Records {
		if r.ReceiptHandle == handle && r.VisibleAt.After(now) {
			return r
		}
	}
	return nil
}

// Remove deletes the records that have these receipt handles.
func (q *Queue) Remove(records []provider.Record) {
	handles := map[string]bool{}
	for i := range records {
		handles[records[i].ReceiptHandle] = true
	}
	q.Records = slices.DeleteFunc(q.Records, func(r *Stored) bool { return handles[r.ReceiptHandle] })
}
