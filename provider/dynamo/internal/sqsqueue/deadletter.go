package sqsqueue

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// DeadLetterQueues are the dead-letter queues of a hub, by the queue whose records they contain.
type DeadLetterQueues struct{ queues *Queues }

// Dead returns the dead-letter queues of the hub.
func (qs *Queues) Dead() DeadLetterQueues { return DeadLetterQueues{qs} }

// Put copies a record to the dead-letter queue of its queue. The message attribute "error" contains the error.
func (dq DeadLetterQueues) Put(ctx context.Context, queue string, u provider.Unreadable) error {
	return dq.PutCopy(ctx, queue, u, u.Record.Group, table.Digest("dead", u.Record.ID))
}

// PutCopy sends a copy to the dead-letter queue of a queue. It uses the group and the deduplication ID only for a FIFO
// queue.
func (dq DeadLetterQueues) PutCopy(
	ctx context.Context, queue string, u provider.Unreadable, group, dedup string,
) error {
	url, ok := dq.queues.DeadLetters[queue]
	if !ok {
		return fmt.Errorf("dynamo: hub %q: %w", dq.queues.Hub,
			&provider.FieldError{Field: "DeadLetters", Problem: fmt.Sprintf("has no dead-letter queue for %q", queue)})
	}
	e := Entry{Body: u.Record.Body, reason: reason(u.Err, MessageLimit-len(u.Record.Body))}
	if IsFIFO(queue) {
		e.Group = group
		e.Dedup = dedup
	}
	return dq.queues.SendBatch(ctx, url, []Entry{e})
}

// reasonLimit is the maximum size of an error, so that it can be read with the record.
const reasonLimit = 1 << 10

// reason returns an error in the form of a message attribute: without the characters that SQS rejects, and within the
// bytes that the body leaves.
func reason(err error, left int) string {
	allowed := strings.Map(func(r rune) rune {
		if r < ' ' || r == '\uFFFE' || r == '\uFFFF' {
			return ' '
		}
		return r
	}, err.Error())
	most := max(0, min(reasonLimit, left-len(AttrReason)-len(attrReasonType)))
	return strings.ToValidUTF8(allowed[:min(most, len(allowed))], "")
}

// URL returns the URL of the dead-letter queue of a queue.
func (dq DeadLetterQueues) URL(queue string) (string, error) {
	url, ok := dq.queues.DeadLetters[queue]
	if !ok {
		return "", fmt.Errorf("dynamo: hub %q: %w", dq.queues.Hub,
			&provider.FieldError{Field: "queue", Problem: fmt.Sprintf("%q has no dead-letter queue", queue)})
	}
	return url, nil
}

// Names returns the names of the queues that have a dead-letter queue.
func (dq DeadLetterQueues) Names() []string { return slices.Sorted(maps.Keys(dq.queues.DeadLetters)) }

// Count reads the attributes of the queue.
func (dq DeadLetterQueues) Count(ctx context.Context, queue string) (visible, hidden int, err error) {
	url, err := dq.URL(queue)
	if err != nil {
		return 0, 0, err
	}
	attributes, err := dq.queues.Attributes(
		ctx, url, types.QueueAttributeNameApproximateNumberOfMessages,
		types.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
	)
	if err != nil {
		return 0, 0, err
	}
	visible = attributes[types.QueueAttributeNameApproximateNumberOfMessages]
	hidden = attributes[types.QueueAttributeNameApproximateNumberOfMessagesNotVisible]
	return visible, hidden, nil
}

// Receive receives messages of a dead-letter queue and hides them for the duration hide. If there are none, it waits
// for up to the duration wait.
func (dq DeadLetterQueues) Receive(ctx context.Context, url string, hide, wait time.Duration) ([]types.Message, error) {
	in := &sqs.ReceiveMessageInput{
		QueueUrl: &url, MaxNumberOfMessages: BatchLimit, VisibilityTimeout: int32(hide / time.Second),
		WaitTimeSeconds: int32(wait / time.Second), MessageAttributeNames: []string{AttrReason},
		MessageSystemAttributeNames: recordAttributes,
	}
	var out *sqs.ReceiveMessageOutput
	err := awscall.Do(ctx, "SQS.ReceiveMessage", "", func() (err error) {
		out, err = dq.queues.api.ReceiveMessage(ctx, in)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out.Messages, nil
}
