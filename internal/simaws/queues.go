package simaws

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// SQS's limits, from "Amazon SQS message quotas" and the API reference.
const (
	maxBatch        = 10
	maxMessageSize  = 1 << 20
	maxDelay        = 900
	maxVisibility   = 43200
	maxWait         = 20
	maxIdentifier   = 128
	maxBatchEntryID = 80

	defaultVisibility = 30 * time.Second
	deduplication     = 5 * time.Minute
)

// urlScheme is the beginning of every queue URL.
const urlScheme = "sim://"

// Queues are the SQS queues of a Cloud. It satisfies any interface of the SDK client's methods that it has.
type Queues struct {
	cloud *Cloud

	mu     sync.RWMutex
	byName map[string]*queue
}

// QueueConfig describes a queue.
type QueueConfig struct {
	// VisibilityTimeout is how long a received message stays invisible: up to 12 hours, 30 seconds when 0.
	VisibilityTimeout time.Duration
	// DeadLetterQueue names the queue that takes a message when it would be received for the MaxReceiveCount+1st time.
	// It must exist, and be FIFO if this one is.
	DeadLetterQueue string
	MaxReceiveCount int
	// MaximumMessageSize is how many bytes a message may have: 1 MiB when 0, as of new queues. Queues that were made before
	// August 2025 have 256 KiB.
	MaximumMessageSize int
	// PerGroupDeduplication makes a deduplication id count within its message group only, as in the high-throughput
	// mode of FIFO queues (DeduplicationScope=messageGroup).
	PerGroupDeduplication bool
}

// Create makes a queue and returns its URL, "sim://" and the name. A name that ends in ".fifo" makes a FIFO queue.
// Like the registration of an HTTP handler it panics on a name in use and on a configuration that AWS refuses.
func (q *Queues) Create(name string, config QueueConfig) string {
	q.mu.Lock()
	defer q.mu.Unlock()

	if name == "" || q.byName[name] != nil {
		panic(fmt.Sprintf("simaws: queue name %q is empty or in use", name))
	}

	if config.MaximumMessageSize == 0 {
		config.MaximumMessageSize = maxMessageSize
	}

	if config.VisibilityTimeout == 0 {
		config.VisibilityTimeout = defaultVisibility
	}

	if config.VisibilityTimeout < 0 || config.VisibilityTimeout > maxVisibility*time.Second {
		panic(fmt.Sprintf("simaws: queue %q: visibility timeout %v is not within 12 hours", name, config.VisibilityTimeout))
	}

	created := newQueue(q.cloud, name, config)
	created.deadLetters = q.deadLetterQueue(name, config)
	q.byName[name] = created

	return created.url
}

func (q *Queues) deadLetterQueue(name string, config QueueConfig) *queue {
	if config.DeadLetterQueue == "" && config.MaxReceiveCount == 0 {
		return nil
	}

	target := q.byName[config.DeadLetterQueue]
	if target == nil || config.MaxReceiveCount < 1 || target.fifo != isFIFO(name) {
		panic(fmt.Sprintf("simaws: queue %q: %d receives and then dead-letter queue %q is no redrive policy",
			name, config.MaxReceiveCount, config.DeadLetterQueue))
	}

	return target
}

func isFIFO(name string) bool { return strings.HasSuffix(name, ".fifo") }

// find returns the queue of a URL.
func (q *Queues) find(url *string) (*queue, error) {
	if url == nil {
		return nil, missingParameter("QueueUrl")
	}

	q.mu.RLock()
	defer q.mu.RUnlock()

	found := q.byName[strings.TrimPrefix(*url, urlScheme)]
	if found == nil {
		return nil, noSuchQueue()
	}

	return found, nil
}

// Disorder is what a standard queue does to its messages, and is allowed to do. The zero value is none of it: messages
// come in the order in which they became visible, and among equals as they arrived.
type Disorder struct {
	// Seed makes the same calls give the same disorder.
	Seed uint64
	// Duplicate is the probability (0 to 1) that a message comes twice: a copy of the same MessageId, with receipts and
	// a receive count of its own, appears between sending and the queue's visibility timeout.
	Duplicate float64
	// Reorder makes visible messages come in random order.
	Reorder bool
}

// Disorder sets what happens to messages sent from now on (Reorder: that become visible from now on). It panics on a
// URL without a standard queue behind it.
func (q *Queues) Disorder(queueURL string, d Disorder) {
	found, err := q.find(&queueURL)
	if err != nil || found.fifo {
		panic(fmt.Sprintf("simaws: %q is no standard queue", queueURL))
	}

	found.disturb(d)
}
