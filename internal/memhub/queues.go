package memhub

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/memhub/queue"
	"github.com/perdure/perdure/provider"
)

const (
	// maxBody is the maximum size of a record.
	maxBody = 1<<20 - 512
	// maxDelay is the maximum delay of a work item or a timer.
	maxDelay = 15 * time.Minute
)

// decodeRecords decodes records. It returns the records for which decode returns an error separately.
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

	byName map[string]*queue.Queue
}

// newQueues returns the queues of a hub, which are empty.
func newQueues(visibility time.Duration) map[string]*queue.Queue {
	byName := map[string]*queue.Queue{}
	for _, name := range []string{
		provider.QueueInbox, provider.QueueTimers, DefaultQueue, OtherQueue, history.ExclusiveQueue(DefaultQueue),
	} {
		_, exclusive := history.BaseQueue(name)
		fifo := exclusive || name == provider.QueueInbox
		byName[name] = queue.New(fifo, visibility)
	}
	return byName
}

// named returns a queue of the hub.
func (st *queues) named(name string) (*queue.Queue, error) {
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
	return st.byName[name].Receive(st.now())
}

// ReceiveDead is like Receive for the dead-letter queue of a queue.
func (st *queues) ReceiveDead(name string) []provider.Record {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.byName[name].Dead.Receive(st.now())
}

// DeadLetter implements provider.Records.
func (st *queues) DeadLetter(ctx context.Context, name string, u provider.Unreadable) error {
	return st.call(ctx, func() error {
		q, err := st.named(name)
		if err != nil {
			return err
		}
		q.Dead.Send(st.now(), st.now(), u.Record.Group, u.Record.Body, u.Record.ID)
		return nil
	})
}

// AbandonRecords implements provider.Records.
func (st *queues) AbandonRecords(
	ctx context.Context, name string, delay time.Duration, records ...provider.Record,
) error {
	return st.call(ctx, func() error {
		q, err := st.named(name)
		if err != nil {
			return err
		}
		for i := range records {
			if r := q.Locked(st.now(), records[i].ReceiptHandle); r != nil {
				r.VisibleAt = st.now().Add(delay)
			}
		}
		return nil
	})
}

// DeleteRecords implements provider.Records.
func (st *queues) DeleteRecords(ctx context.Context, name string, records ...provider.Record) error {
	return st.call(ctx, func() error {
		q, err := st.named(name)
		if err != nil {
			return err
		}
		q.Remove(records)
		return nil
	})
}

// delayedUntil returns the time at which a delayed record becomes visible. It is less than a second before the given
// time, or the end of the maximum delay.
func (st *queues) delayedUntil(at time.Time) time.Time {
	now := st.now()
	return now.Add(min(max(at.Sub(now), 0), maxDelay).Truncate(time.Second))
}
