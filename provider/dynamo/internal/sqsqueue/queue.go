// Package sqsqueue sends, receives, locks and deletes messages of the hub's SQS queues. It does not decode the
// messages.
package sqsqueue

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// API contains the SQS calls of Queues.
type API interface {
	SendMessageBatch(
		ctx context.Context, in *sqs.SendMessageBatchInput, opts ...func(*sqs.Options),
	) (*sqs.SendMessageBatchOutput, error)
	DeleteMessageBatch(
		ctx context.Context, in *sqs.DeleteMessageBatchInput, opts ...func(*sqs.Options),
	) (*sqs.DeleteMessageBatchOutput, error)
	ChangeMessageVisibilityBatch(
		ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, opts ...func(*sqs.Options),
	) (*sqs.ChangeMessageVisibilityBatchOutput, error)
	ReceiveMessage(
		ctx context.Context, in *sqs.ReceiveMessageInput, opts ...func(*sqs.Options),
	) (*sqs.ReceiveMessageOutput, error)
	GetQueueAttributes(
		ctx context.Context, in *sqs.GetQueueAttributesInput, opts ...func(*sqs.Options),
	) (*sqs.GetQueueAttributesOutput, error)
}

// Config contains the queues of a hub.
type Config struct {
	Hub                 string
	InboxURL, TimersURL string
	// WorkQueues and DeadLetters contain URLs by the name of a queue.
	WorkQueues, DeadLetters map[string]string
	// MaxDelay is the longest delay of a message.
	MaxDelay time.Duration
}

// Queues makes the calls to the queues of a hub, and repeats calls that failed temporarily. It is safe for concurrent
// use.
type Queues struct {
	Config

	api API
	now func() time.Time
	// visibilities caches the visibility timeouts of queues by URL.
	visibilities sync.Map
}

// New returns the queues of a hub.
func New(api API, c Config, now func() time.Time) *Queues {
	return &Queues{Config: c, api: api, now: now}
}

// IsFIFO reports whether a queue of the hub, and its dead-letter queue, is a FIFO queue.
func IsFIFO(queue string) bool {
	_, exclusive := history.BaseQueue(queue)
	return exclusive || queue == provider.QueueInbox
}

// CheckHub returns an error for the name of another hub. Otherwise it clears the name, which only the wire format
// needs.
func (qs *Queues) CheckHub(name *string) error {
	if *name != "" && *name != qs.Hub {
		return fmt.Errorf("dynamo: %w",
			&provider.FieldError{Field: "hub", Problem: fmt.Sprintf("is %q, but this hub is %q", *name, qs.Hub)})
	}
	*name = ""
	return nil
}

// URL returns the URL of a queue by its name: a work queue, provider.QueueInbox or provider.QueueTimers.
func (qs *Queues) URL(name string) (string, error) {
	switch name {
	case provider.QueueInbox:
		return qs.InboxURL, nil
	case provider.QueueTimers:
		return qs.TimersURL, nil
	}
	if url, ok := qs.WorkQueues[name]; ok {
		return url, nil
	}
	return "", fmt.Errorf("dynamo: hub %q: %w", qs.Hub,
		&provider.FieldError{Field: "queue", Problem: fmt.Sprintf("%q does not exist", name)})
}

// DelayUntil returns the delay of a message, rounded down. The receiver waits for the rest of the second, so that a
// timer is not up to a second late.
func (qs *Queues) DelayUntil(at time.Time) int32 {
	return int32(min(max(at.Sub(qs.now()), 0), qs.MaxDelay) / time.Second)
}
