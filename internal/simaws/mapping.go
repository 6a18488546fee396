package simaws

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Mapping is a Lambda event source mapping. It receives messages from a queue and passes them to a function.
//
// After Invoke returns, the mapping deletes the messages that did not fail. Failed messages are redelivered when their
// visibility timeout ends. The function may shorten the timeout. All messages fail if Invoke returns an error, panics,
// or names an ID that is not in the batch. A batch of a FIFO queue may contain several message groups, each in order.
// Only one batch at a time contains messages of a group.
//
// If a batch exceeds the payload limit of an invocation, 6 MB, the mapping splits it into several invocations, one
// after the other. AWS does not document the effect of a failed message on the later invocations. This mapping skips
// the later invocations of a FIFO queue, because groups are in order. Their messages are redelivered.
type Mapping struct {
	// BatchSize is the maximum number of messages in a batch. 0 means 10.
	BatchSize int
	// Concurrency is the maximum number of concurrent invocations. 0 means no limit.
	Concurrency int
	// Invoke is the function. Each call runs on a new goroutine.
	Invoke func(ctx context.Context, messages []sqstypes.Message) (failedMessageIDs []string, err error)
}

type mapping struct {
	Mapping

	cloud   *Cloud
	queue   *queue
	apart   context.Context //nolint:containedctx // of calls that continue after the end of an invocation
	running atomic.Int64
	// idle is closed when an invocation ends.
	mu   sync.Mutex
	idle chan struct{}
}

// Map connects a queue to a function. Step and Serve run the mapping. Map panics if the queue is unknown or Invoke is
// nil.
func (c *Cloud) Map(queueURL string, m Mapping) {
	q, err := c.Queues.find(&queueURL)
	if err != nil || m.Invoke == nil {
		panic(fmt.Sprintf("simaws: a mapping requires a queue and a function: %q", queueURL))
	}

	if m.BatchSize == 0 {
		m.BatchSize = maxBatch
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	made := &mapping{Mapping: m, cloud: c, queue: q}
	made.apart = made.ofQueue(context.Background())
	c.mappings = append(c.mappings, made)
}

// Unmap removes all mappings. Running invocations continue.
func (c *Cloud) Unmap() {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.mappings = nil
}

// all returns the current mappings in order of creation.
func (c *Cloud) all() []*mapping {
	c.mu.RLock()
	defer c.mu.RUnlock()

	return slices.Clip(c.mappings)
}

// Step receives one available batch of the first mapping that has one, and starts its invocation on a new goroutine. It
// returns false if no batch is available. Do not combine Step with Serve.
func (c *Cloud) Step() bool {
	for again := true; again; {
		again = false

		for _, m := range c.all() {
			started, buried := m.step()
			if started {
				return true
			}

			again = again || buried // a dead-letter queue may have been passed already
		}
	}

	return false
}

// step starts an invocation if there is a batch. buried reports that messages moved to a dead-letter queue.
func (m *mapping) step() (started, buried bool) {
	if !m.acquire() {
		return false, false
	}

	b := m.queue.receive(m.BatchSize, m.queue.VisibilityTimeout)
	if len(b.deliveries) == 0 {
		m.running.Add(-1)

		return false, b.buried
	}

	m.cloud.inFlight.Add(1)

	go m.run(context.Background(), b.deliveries)

	return true, b.buried
}

// NextDue returns the time at which the next known message of a mapped queue becomes visible, which is in the past for
// visible messages. ok is false if there is no such message. NextDue ignores mappings that have reached their
// Concurrency. Changed reports the end of an invocation.
func (c *Cloud) NextDue() (at time.Time, ok bool) {
	earliest := int64(0)

	for _, m := range c.all() {
		if m.full() {
			continue
		}

		m.queue.mu.Lock()
		due, has := m.queue.deliveryOrder.due()
		m.queue.mu.Unlock()

		if has && (!ok || due < earliest) {
			earliest, ok = due, true
		}
	}

	if !ok {
		return time.Time{}, false
	}

	return time.Unix(0, earliest), true
}

// Changed returns a channel on which a value arrives after events that let Step deliver more or make NextDue earlier.
// The events are: a message was sent, also with a delay; its visibility changed; a message group became free; an
// invocation ended. The capacity of the channel is 1. Use only one reader, which must check all conditions after each
// value.
func (c *Cloud) Changed() <-chan struct{} { return c.changed }

// InFlight returns the number of running invocations.
func (c *Cloud) InFlight() int { return int(c.inFlight.Load()) }

func (c *Cloud) notify() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

func (m *mapping) full() bool {
	return m.Concurrency > 0 && m.running.Load() >= int64(m.Concurrency)
}

// acquire counts a new invocation, unless the mapping has reached its concurrency.
func (m *mapping) acquire() bool {
	if n := m.running.Add(1); m.Concurrency > 0 && n > int64(m.Concurrency) {
		m.running.Add(-1)

		return false
	}

	return true
}

// release ends an invocation that acquire counted.
func (m *mapping) release() {
	m.running.Add(-1)

	m.mu.Lock()
	defer m.mu.Unlock()

	if m.idle != nil {
		close(m.idle)
		m.idle = nil
	}
}

// run passes a batch to the function, deletes the processed messages, and releases the invocation that Step or Serve
// acquired.
func (m *mapping) run(ctx context.Context, deliveries []delivery) {
	done := false

	defer func() { // even if Invoke ends its goroutine
		if !done {
			m.cloud.usage.failures.Add(1)
		}

		m.release()
		m.cloud.inFlight.Add(-1)
		m.cloud.notify()
	}()

	ok := true

	for part := range payloads(deliveries) {
		succeeded, complete := m.invoke(ctx, part)
		ok = ok && succeeded

		if ctx.Err() != nil || m.queue.fifo && !complete {
			break
		}
	}

	done = ok
}

type mappedQueueKey struct{}

// ofQueue returns the context of a call of the mapping itself.
func (m *mapping) ofQueue(ctx context.Context) context.Context {
	return context.WithValue(ctx, mappedQueueKey{}, m.queue)
}

// mappedQueue returns the queue of the mapping that makes a call, or an empty string for other calls.
func mappedQueue(ctx context.Context) string {
	if q, ok := ctx.Value(mappedQueueKey{}).(*queue); ok {
		return q.url
	}

	return ""
}

// invoke passes messages to the function. succeeded is false if the invocation failed. complete is false if a message
// failed.
func (m *mapping) invoke(ctx context.Context, deliveries []delivery) (succeeded, complete bool) {
	s := selection{all: true}
	messages := make([]sqstypes.Message, len(deliveries))

	for i := range deliveries {
		messages[i] = deliveries[i].message(&s)
	}

	failures, err := do(m.ofQueue(ctx), m.cloud, opInvoke, messages, func() (*[]string, error) {
		ids, err := m.protected(ctx, messages)

		return &ids, err
	})
	if err != nil {
		return false, false
	}

	finished, ok := without(messages, *failures)
	if ok {
		m.delete(finished)
	}

	return ok, ok && len(finished) == len(messages)
}

// protected calls the function and converts a panic to an error, like a crash of the function.
func (m *mapping) protected(ctx context.Context, messages []sqstypes.Message) (ids []string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("simaws: function of %s panicked: %v", m.queue.name, r)
		}
	}()

	return m.Invoke(ctx, messages)
}

// without returns the messages that did not fail. ok is false if a failed ID is unknown.
func without(messages []sqstypes.Message, failures []string) (finished []sqstypes.Message, ok bool) {
	if len(failures) == 0 {
		return messages, true
	}

	unseen := make(map[string]bool, len(failures))
	for _, id := range failures {
		unseen[id] = true
	}

	known := 0

	for _, message := range messages {
		if unseen[*message.MessageId] {
			known++
		} else {
			finished = append(finished, message)
		}
	}

	return finished, known >= len(unseen)
}

// delete deletes messages after the function has returned, in batches of ten. Like Lambda, it does not retry.
func (m *mapping) delete(messages []sqstypes.Message) {
	for len(messages) > 0 {
		n := min(maxBatch, len(messages))
		in := &sqs.DeleteMessageBatchInput{
			QueueUrl: &m.queue.url, Entries: make([]sqstypes.DeleteMessageBatchRequestEntry, n),
		}

		for i, message := range messages[:n] {
			in.Entries[i] = sqstypes.DeleteMessageBatchRequestEntry{
				Id: aws.String(strconv.Itoa(i)), ReceiptHandle: message.ReceiptHandle,
			}
		}

		// Messages that were not deleted are redelivered, so the loop can continue.
		_, _ = do(m.apart, m.cloud, opMappingDelete, in, func() (*sqs.DeleteMessageBatchOutput, error) {
			return m.cloud.Queues.deleteBatch(in)
		})

		messages = messages[n:]
	}
}
