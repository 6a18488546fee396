package simaws

import (
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"time"
)

// queue is an SQS queue. It implements the behavior that standard and FIFO queues share. deliveryOrder determines the
// order of delivery.
type queue struct {
	QueueConfig

	cloud       *Cloud
	name        string
	url         string
	fifo        bool
	number      int
	deadLetters *queue

	mu            sync.Mutex
	arrivals      uint64
	messages      map[uint64]*message
	deliveryOrder deliveryOrder
	seen          deduplicator
	// changed is closed when a message may become visible earlier than a waiting receiver expects.
	changed chan struct{}

	disorder Disorder
	rand     *rand.Rand
}

// deliveryOrder contains the messages of a queue in the order of their delivery.
type deliveryOrder interface {
	// put adds a message that is not in the order.
	put(m *message, now int64)
	// take offers the visible messages to a function in order, until the function has taken most of them. The function
	// reports whether it took the message, and then has hidden it. A message that it did not take is removed from the
	// deliveryOrder.
	take(now int64, most int, take func(m *message) bool)
	// moved updates the order after a change of a message's visibleAt.
	moved(m *message, now int64)
	remove(m *message)
	// due returns the time at which the next message becomes or became visible. ok is false if there is no message.
	due() (at int64, ok bool)
}

func newQueue(c *Cloud, name string, config QueueConfig) *queue {
	q := &queue{
		QueueConfig: config, cloud: c, name: name, url: urlScheme + name, fifo: isFIFO(name),
		number:   len(c.Queues.byName) + 1,
		messages: map[uint64]*message{}, seen: deduplicator{seed: maphash.MakeSeed()},
	}
	q.deliveryOrder = &standardOrder{rank: q.rank}

	if q.fifo {
		q.deliveryOrder = &fifoOrder{groups: map[string]*group{}}
	}

	return q
}

func (q *queue) arn() string { return "arn:aws:sqs:us-east-1:000000000000:" + q.name }

func (q *queue) setDisorder(d Disorder) {
	q.mu.Lock()
	defer q.mu.Unlock()

	q.disorder = d
	q.rand = rand.New(rand.NewPCG(d.Seed, d.Seed))
}

// rank returns the position of a message among the visible messages of a standard queue.
func (q *queue) rank(m *message) int64 {
	if q.disorder.Reorder {
		return q.rand.Int64()
	}

	return m.visibleAt
}

// notify wakes the receivers that wait for this queue, and the driver of the Cloud. The queue must be locked.
func (q *queue) notify() {
	if q.changed != nil {
		close(q.changed)
		q.changed = nil
	}

	q.cloud.notify()
}

// put stores a message, or returns the message that it repeats. The queue must be locked.
func (q *queue) put(c content, delay time.Duration) (messageID, sequence string) {
	now := q.cloud.nanos()
	n := q.arrivals + 1

	if q.fifo {
		scope := ""
		if q.PerGroupDeduplication {
			scope = c.group
		}

		if first, repeated := q.seen.check(scope, c.deduplication, n, now); repeated {
			return q.messageID(first), sequenceNumber(first)
		}

		sequence = sequenceNumber(n)
	}

	c.messageID = q.messageID(n)
	m := q.add(c, now, now+int64(delay))
	m.sequence = sequence

	if q.disorder.Duplicate > 0 && q.rand.Float64() < q.disorder.Duplicate {
		q.add(c, now, m.visibleAt+q.rand.Int64N(int64(q.VisibilityTimeout)))
	}

	q.notify()

	return c.messageID, sequence
}

// add adds a copy of a message. The queue must be locked.
func (q *queue) add(c content, now, visibleAt int64) *message {
	q.arrivals++
	m := &message{content: c, id: q.arrivals, sent: now, visibleAt: visibleAt}
	q.messages[m.id] = m
	q.deliveryOrder.put(m, now)

	return m
}

// batch is the result of a receive.
type batch struct {
	deliveries []delivery
	// changed ends the wait of a receiver without messages. If hasDue is set, due is the latest time of the next
	// attempt.
	changed <-chan struct{}
	due     int64
	hasDue  bool
	// buried reports that messages moved to the dead-letter queue.
	buried bool
}

// receive returns up to most visible messages. It moves messages that were received too often to the dead-letter queue.
func (q *queue) receive(most int, visibility time.Duration) batch {
	now := q.cloud.nanos()

	q.mu.Lock()

	out := batch{}
	dead := []*message(nil)

	q.deliveryOrder.take(now, most, func(m *message) bool {
		if q.deadLetters != nil && m.receives >= q.MaxReceiveCount {
			delete(q.messages, m.id)

			dead = append(dead, m)

			return false
		}

		out.deliveries = append(out.deliveries, q.deliver(m, now, visibility))

		return true
	})

	if len(out.deliveries) == 0 {
		out.changed = q.waiting()
		out.due, out.hasDue = q.deliveryOrder.due()
	}

	out.buried = len(dead) > 0
	q.mu.Unlock()

	for _, m := range dead {
		q.deadLetters.putDeadLetter(m, q.arn())
	}

	return out
}

// deliver hides a message and returns its delivery. The queue must be locked. The caller updates the order.
func (q *queue) deliver(m *message, now int64, visibility time.Duration) delivery {
	m.receives++
	m.visibleAt = now + int64(visibility)
	m.lease = now + int64(maxVisibility*time.Second)

	if m.firstReceived == 0 {
		m.firstReceived = now
	}

	return delivery{
		content: &m.content, receipt: q.receipt(m), sequence: m.sequence, sent: m.sent,
		firstReceived: m.firstReceived, receives: m.receives, source: m.source,
	}
}

// waiting returns the channel that ends the wait of a receiver. The queue must be locked.
func (q *queue) waiting() <-chan struct{} {
	if q.changed == nil {
		q.changed = make(chan struct{})
	}

	return q.changed
}

// putDeadLetter adds a dead letter of another queue as a new message. The message keeps its MessageId and, in a
// standard queue, its SentTimestamp.
func (q *queue) putDeadLetter(dead *message, source string) {
	now := q.cloud.nanos()

	q.mu.Lock()
	defer q.mu.Unlock()

	m := q.add(dead.content, now, now)
	m.source = source

	if q.fifo {
		m.sequence = sequenceNumber(m.id)
	} else {
		m.sent = dead.sent
	}

	q.notify()
}

// remove deletes the message of a receipt. A FIFO queue rejects an expired receipt. A standard queue accepts it, and
// deletes the message unless it was received again.
func (q *queue) remove(receipt string) error {
	id, receives, err := q.parseReceipt(receipt)
	if err != nil {
		return err
	}

	now := q.cloud.nanos()

	q.mu.Lock()
	defer q.mu.Unlock()

	m := q.messages[id]

	switch {
	case m == nil:
		return nil // a repeated deletion succeeds
	case q.fifo && (m.receives != receives || !m.inFlight(now)):
		return invalidParameter(receipt, "ReceiptHandle", "The receipt handle has expired.")
	case m.receives != receives:
		return nil
	}

	q.deliveryOrder.remove(m)
	delete(q.messages, m.id)

	if q.fifo {
		q.notify() // the next message of the group may be visible now
	}

	return nil
}

// changeVisibility makes a message in flight visible after a timeout.
func (q *queue) changeVisibility(receipt string, timeout time.Duration) error {
	id, receives, err := q.parseReceipt(receipt)
	if err != nil {
		return err
	}

	now := q.cloud.nanos()

	q.mu.Lock()
	defer q.mu.Unlock()

	m := q.messages[id]

	switch {
	case m == nil || m.receives != receives:
		return invalidParameter(receipt, "ReceiptHandle",
			"Message does not exist or is not available for visibility timeout change.")
	case !m.inFlight(now):
		return notInFlight(receipt)
	case now+int64(timeout) > m.lease:
		return invalidParameter(timeout.String(), "VisibilityTimeout",
			"Total VisibilityTimeout for the message is beyond the limit [43200 seconds]")
	}

	m.visibleAt = now + int64(timeout)
	q.deliveryOrder.moved(m, now)
	q.notify()

	return nil
}
