package simaws

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// Limits of SQS, from "Amazon SQS message quotas" and the API reference.
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

// urlScheme is the prefix of every queue URL.
const urlScheme = "sim://"

// Queues simulates the SQS queues of a Cloud. It implements any interface that consists of its methods of the SDK
// client.
type Queues struct {
	cloud *Cloud

	mu     sync.RWMutex
	byName map[string]*queue
}

// QueueConfig describes a queue.
type QueueConfig struct {
	// VisibilityTimeout is the time for which a received message is invisible, up to 12 hours. 0 means 30 seconds.
	VisibilityTimeout time.Duration
	// DeadLetterQueue names the queue to which a message moves instead of its receive number MaxReceiveCount+1. The
	// queue must exist. It must be FIFO if this queue is FIFO.
	DeadLetterQueue string
	MaxReceiveCount int
	// MaximumMessageSize is the maximum size of a message in bytes. 0 means 1 MiB, the limit of new queues. Queues
	// created before August 2025 have a limit of 256 KiB.
	MaximumMessageSize int
	// PerGroupDeduplication limits a deduplication ID to its message group, as in the high-throughput mode of FIFO
	// queues (DeduplicationScope=messageGroup).
	PerGroupDeduplication bool
}

// Create creates a queue and returns its URL: "sim://" and the name. A name that ends in ".fifo" creates a FIFO queue.
// Create panics if the name is in use or AWS would reject the configuration.
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
		panic(fmt.Sprintf("simaws: queue %q: visibility timeout %v is not within 12 hours", name,
			config.VisibilityTimeout))
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
		panic(fmt.Sprintf("simaws: queue %q: invalid redrive policy: %d receives, dead-letter queue %q",
			name, config.MaxReceiveCount, config.DeadLetterQueue))
	}

	return target
}

func isFIFO(name string) bool { return strings.HasSuffix(name, ".fifo") }

// find returns the queue with a URL.
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

// Disorder describes duplicates and reordering, which AWS allows in a standard queue. With the zero value, messages
// arrive once, in the order in which they become visible. Messages that become visible at the same time arrive in the
// order in which they were sent.
type Disorder struct {
	// Seed selects the disorder. The same calls with the same seed have the same disorder.
	Seed uint64
	// Duplicate is the probability (0 to 1) that a message arrives twice. The copy has the same MessageId, with its own
	// receipts and receive count. It appears within the queue's visibility timeout after the message was sent.
	Duplicate float64
	// Reorder delivers visible messages in random order.
	Reorder bool
}

// Disorder sets the disorder of messages that are sent from now on, and the Reorder of messages that become visible
// from now on. It panics if the URL does not name a standard queue.
func (q *Queues) Disorder(queueURL string, d Disorder) {
	found, err := q.find(&queueURL)
	if err != nil || found.fifo {
		panic(fmt.Sprintf("simaws: %q is not a standard queue", queueURL))
	}

	found.setDisorder(d)
}
