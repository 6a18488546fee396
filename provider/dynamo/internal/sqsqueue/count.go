package sqsqueue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/internal/sleep"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
)

// queuePurger contains the call that purges a queue. *sqs.Client implements it, and emulations can.
type queuePurger interface {
	PurgeQueue(ctx context.Context, in *sqs.PurgeQueueInput, opts ...func(*sqs.Options)) (*sqs.PurgeQueueOutput, error)
}

// SQS accepts one purge of a queue per 60 seconds from all callers together. Purge therefore repeats the call until SQS
// accepts it, or until the number of tries is reached. A purge can also delete messages that are sent in the minute
// after it, so callers wait (provider.QueuePurgeCooldown).
const (
	purgePause = 10 * time.Second
	purgeTries = 30
)

// Purge deletes all messages of a queue.
func (qs *Queues) Purge(ctx context.Context, url string) error {
	admin, ok := qs.api.(queuePurger)
	if !ok {
		return fmt.Errorf("dynamo: SQS.PurgeQueue: %w", awscall.ErrUnsupported)
	}
	for try := 1; ; try++ {
		err := awscall.DoWithTimeout(ctx, "SQS.PurgeQueue", func(ctx context.Context) error {
			_, err := admin.PurgeQueue(ctx, &sqs.PurgeQueueInput{QueueUrl: &url})
			return err
		})
		if _, under := errors.AsType[*types.PurgeQueueInProgress](err); !under || try == purgeTries {
			return err
		}
		if err := sleep.For(ctx, purgePause); err != nil {
			return err
		}
	}
}

// CountWorkItems reads the attributes of all work queues concurrently.
func (qs *Queues) CountWorkItems(ctx context.Context) (map[string]int, error) {
	var mu sync.Mutex
	counts := map[string]int{}
	calls := make([]func() error, 0, len(qs.WorkQueues))
	for name, url := range qs.WorkQueues {
		calls = append(calls, func() error {
			n, err := qs.countMessages(ctx, url)
			mu.Lock()
			defer mu.Unlock()
			counts[name] = n
			return err
		})
	}
	return counts, awscall.Parallel(calls...)
}

func (qs *Queues) countMessages(ctx context.Context, url string) (n int, err error) {
	counts, err := qs.Attributes(
		ctx, url, types.QueueAttributeNameApproximateNumberOfMessages,
		types.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
	)
	for _, some := range counts {
		n += some
	}
	return n, err
}

// Attributes reads numeric attributes of a queue.
func (qs *Queues) Attributes(
	ctx context.Context, url string, names ...types.QueueAttributeName,
) (map[types.QueueAttributeName]int, error) {
	attributes, err := qs.readAttributes(ctx, url, names...)
	if err != nil {
		return nil, err
	}
	numbers := map[types.QueueAttributeName]int{}
	for _, name := range names {
		if numbers[name], err = strconv.Atoi(attributes[string(name)]); err != nil {
			return nil, fmt.Errorf("dynamo: queue %s: attribute %s is %q", url, name, attributes[string(name)])
		}
	}
	return numbers, nil
}

func (qs *Queues) readAttributes(
	ctx context.Context, url string, names ...types.QueueAttributeName,
) (attributes map[string]string, err error) {
	err = awscall.Do(ctx, "SQS.GetQueueAttributes", "", func() error {
		out, err := qs.api.GetQueueAttributes(
			ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: names},
		)
		if err == nil {
			attributes = out.Attributes
		}
		return err
	})
	if err != nil { // SQS does not name a queue that does not exist
		return nil, fmt.Errorf("dynamo: queue %s: %w", url, err)
	}
	return attributes, nil
}

// WorkingQueues returns the URLs of the queues whose messages are processed, by name.
func (qs *Queues) WorkingQueues() map[string]string {
	queues := map[string]string{provider.QueueInbox: qs.InboxURL, provider.QueueTimers: qs.TimersURL}
	maps.Copy(queues, qs.WorkQueues)
	return queues
}
