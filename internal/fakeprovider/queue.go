package fakeprovider

import (
	"context"
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

// queueNamed returns a queue of the hub.
func (p *Provider) queueNamed(name string) (*queue, error) {
	if q := p.queues[name]; q != nil {
		return q, nil
	}
	unknown := &provider.FieldError{Field: "queue", Problem: fmt.Sprintf("%q does not exist", name)}
	return nil, fmt.Errorf("fake: %w", unknown)
}

// Receive receives up to 10 visible records of a queue, and locks them.
func (p *Provider) Receive(name string) []provider.Record {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queues[name].receive(p.now())
}

// ReceiveDead is like Receive for the dead-letter queue of a queue.
func (p *Provider) ReceiveDead(name string) []provider.Record {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queues[name].dead.receive(p.now())
}

// DeadLetter implements provider.Records.
func (p *Provider) DeadLetter(ctx context.Context, name string, u provider.Unreadable) error {
	if err := p.begin(ctx); err != nil {
		return err
	}
	defer p.mu.Unlock()
	q, err := p.queueNamed(name)
	if err != nil {
		return err
	}
	q.dead.send(p.now(), p.now(), u.Record.Group, u.Record.Body, u.Record.ID)
	return nil
}

// AbandonRecords implements provider.Records.
func (p *Provider) AbandonRecords(
	ctx context.Context, name string, delay time.Duration, records ...provider.Record,
) error {
	if err := p.begin(ctx); err != nil {
		return err
	}
	defer p.mu.Unlock()
	q, err := p.queueNamed(name)
	if err != nil {
		return err
	}
	for i := range records {
		if r := q.locked(p.now(), records[i].ReceiptHandle); r != nil {
			r.visibleAt = p.now().Add(delay)
		}
	}
	return nil
}

// DeleteRecords implements provider.Records.
func (p *Provider) DeleteRecords(ctx context.Context, name string, records ...provider.Record) error {
	if err := p.begin(ctx); err != nil {
		return err
	}
	defer p.mu.Unlock()
	q, err := p.queueNamed(name)
	if err != nil {
		return err
	}
	q.remove(records)
	return nil
}

// crashMark counts the deliveries of a record that started code and were not unmarked.
type crashMark struct {
	delivery, begun int
}

func markKey(a *provider.Attempt) string {
	return fmt.Sprintf("%s %d %s", a.ExecutionID, a.ActivityID, a.Record.ID)
}

// PutCrashMarker implements provider.CrashMarkers. An older delivery than the last marked one does not count.
func (p *Provider) PutCrashMarker(ctx context.Context, a provider.Attempt) (died int, err error) {
	if err := p.begin(ctx); err != nil {
		return 0, err
	}
	defer p.mu.Unlock()
	m := p.marks[markKey(&a)]
	if m == nil {
		m = &crashMark{}
		p.marks[markKey(&a)] = m
	}
	switch isNew := a.Record.ReceiveCount > m.delivery; {
	case isNew && (!a.Batched || m.begun == 0):
		m.delivery = a.Record.ReceiveCount
		m.begun++
	case a.Batched && a.Record.ReceiveCount != m.delivery:
		return m.begun, nil // none of the counted deliveries is this one
	}
	return max(0, m.begun-1), nil
}

// DeleteCrashMarker implements provider.CrashMarkers. The marker of a later delivery stays.
func (p *Provider) DeleteCrashMarker(ctx context.Context, a provider.Attempt) error {
	if err := p.begin(ctx); err != nil {
		return err
	}
	defer p.mu.Unlock()
	m := p.marks[markKey(&a)]
	switch {
	case m == nil || m.delivery < a.Record.ReceiveCount:
	case m.delivery > a.Record.ReceiveCount:
		m.begun = min(m.begun, 1)
	case a.Progressed:
		m.begun = 1
	default:
		m.begun = 0
	}
	return nil
}
