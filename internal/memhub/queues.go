package memhub

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

const (
	// batchSize is the maximum number of records that are received at once.
	batchSize = 10
	// dedupTime is the time for which a FIFO queue drops repetitions.
	dedupTime = 5 * time.Minute
	// maxBody is the maximum size of a record.
	maxBody = 1<<20 - 512
	// maxDelay is the maximum delay of a work item or a timer.
	maxDelay = 15 * time.Minute
)

// queue is a queue that delivers each record until it is deleted.
type queue struct {
	// fifo is true if the queue delivers the records of a group in order, and drops repetitions.
	fifo       bool
	visibility time.Duration
	dead       *queue // nil for a dead-letter queue

	records []*stored // in the order in which they were sent
	sent    int
	dedup   map[string]time.Time // the time until which a repetition is dropped
}

// stored is a record in a queue. Its receipt handle is that of the last delivery.
type stored struct {
	provider.Record

	visibleAt time.Time
}

// send adds a record. A FIFO queue drops a repetition: a record with the same dedup, unless that is empty.
func (q *queue) send(now, visibleAt time.Time, group, body, dedup string) {
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
	q.records = append(q.records, &stored{Record: r, visibleAt: visibleAt})
}

// receive receives visible records and locks them. It skips groups of which a record is locked.
func (q *queue) receive(now time.Time) (received []provider.Record) {
	locked := map[string]bool{}
	for _, r := range q.records {
		switch {
		case len(received) == batchSize:
			return received
		case r.visibleAt.After(now):
			locked[r.Group] = q.fifo
		case !locked[r.Group]:
			r.ReceiveCount++
			r.ReceiptHandle = fmt.Sprintf("%s.%d", r.ID, r.ReceiveCount)
			r.visibleAt = now.Add(q.visibility)
			received = append(received, r.Record)
		}
	}
	return received
}

// locked returns the record with a receipt handle if its lock has not expired, or nil.
func (q *queue) locked(now time.Time, handle string) *stored {
	for _, r := range q.records {
		if r.ReceiptHandle == handle && r.visibleAt.After(now) {
			return r
		}
	}
	return nil
}

// remove deletes the records that have these receipt handles.
func (q *queue) remove(records []provider.Record) {
	handles := map[string]bool{}
	for i := range records {
		handles[records[i].ReceiptHandle] = true
	}
	q.records = slices.DeleteFunc(q.records, func(r *stored) bool { return handles[r.ReceiptHandle] })
}

// decodeRecords decodes records, and returns those for which decode returns an error separately.
func decodeRecords[T any](
	records []provider.Record, decode func(provider.Record) (T, error),
) (all []T, unreadable []provider.Unreadable) {
	for _, r := range records {
		if v, err := decode(r); err != nil {
			unreadable = append(unreadable, provider.Unreadable{Record: r, Err: err})
		} else {
			all = append(all, v)
		}
	}
	return all, unreadable
}

// queues are the queues of a hub (provider.Records).
type queues struct {
	*base

	byName map[string]*queue
}

// newQueues returns the queues of a hub, which are empty.
func newQueues(visibility time.Duration) map[string]*queue {
	byName := map[string]*queue{}
	for _, name := range []string{
		provider.QueueInbox, provider.QueueTimers, DefaultQueue, OtherQueue, history.ExclusiveQueue(DefaultQueue),
	} {
		_, exclusive := history.BaseQueue(name)
		fifo := exclusive || name == provider.QueueInbox
		byName[name] = &queue{fifo: fifo, visibility: visibility, dead: &queue{fifo: fifo, visibility: visibility}}
	}
	return byName
}

// named returns a queue of the hub.
func (st *queues) named(name string) (*queue, error) {
	if q := st.byName[name]; q != nil {
		return q, nil
	}
	unknown := &provider.FieldError{Field: "queue", Problem: fmt.Sprintf("%q does not exist", name)}
	return nil, fmt.Errorf("fake: %w", unknown)
}

// Receive receives up to 10 visible records of a queue, and locks them.
func (st *queues) Receive(name string) []provider.Record {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.byName[name].receive(st.now())
}

// ReceiveDead is like Receive for the dead-letter queue of a queue.
func (st *queues) ReceiveDead(name string) []provider.Record {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.byName[name].dead.receive(st.now())
}

// DeadLetter implements provider.Records.
func (st *queues) DeadLetter(ctx context.Context, name string, u provider.Unreadable) error {
	if err := st.begin(ctx); err != nil {
		return err
	}
	defer st.mu.Unlock()
	q, err := st.named(name)
	if err != nil {
		return err
	}
	q.dead.send(st.now(), st.now(), u.Record.Group, u.Record.Body, u.Record.ID)
	return nil
}

// AbandonRecords implements provider.Records.
func (st *queues) AbandonRecords(
	ctx context.Context, name string, delay time.Duration, records ...provider.Record,
) error {
	if err := st.begin(ctx); err != nil {
		return err
	}
	defer st.mu.Unlock()
	q, err := st.named(name)
	if err != nil {
		return err
	}
	for i := range records {
		if r := q.locked(st.now(), records[i].ReceiptHandle); r != nil {
			r.visibleAt = st.now().Add(delay)
		}
	}
	return nil
}

// DeleteRecords implements provider.Records.
func (st *queues) DeleteRecords(ctx context.Context, name string, records ...provider.Record) error {
	if err := st.begin(ctx); err != nil {
		return err
	}
	defer st.mu.Unlock()
	q, err := st.named(name)
	if err != nil {
		return err
	}
	q.remove(records)
	return nil
}

// delayedUntil returns the time at which a delayed record becomes visible: less than a second before the given time, or
// after the maximum delay.
func (st *queues) delayedUntil(at time.Time) time.Time {
	now := st.now()
	return now.Add(min(max(at.Sub(now), 0), maxDelay).Truncate(time.Second))
}
