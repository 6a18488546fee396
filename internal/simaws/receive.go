package simaws

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// ReceiveMessage receives up to 10 visible messages. With WaitTimeSeconds, it waits for the first message.
func (q *Queues) ReceiveMessage(
	ctx context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options),
) (*sqs.ReceiveMessageOutput, error) {
	return do(ctx, q.cloud, opReceiveMessage, in, func() (*sqs.ReceiveMessageOutput, error) {
		from, err := q.find(in.QueueUrl)
		if err != nil {
			return nil, err
		}

		if err := checkReceive(in); err != nil {
			return nil, err
		}

		visibility := from.VisibilityTimeout
		if in.VisibilityTimeout > 0 {
			visibility = time.Duration(in.VisibilityTimeout) * time.Second
		}

		deliveries, err := from.await(ctx, int(max(1, in.MaxNumberOfMessages)), visibility,
			time.Duration(in.WaitTimeSeconds)*time.Second)
		if err != nil {
			return nil, err
		}

		s := wanted(in)
		out := &sqs.ReceiveMessageOutput{Messages: make([]sqstypes.Message, len(deliveries))}

		for i := range deliveries {
			out.Messages[i] = deliveries[i].message(&s)
		}

		return out, nil
	})
}

func checkReceive(in *sqs.ReceiveMessageInput) error {
	switch {
	case in.MaxNumberOfMessages < 0 || in.MaxNumberOfMessages > maxBatch:
		return invalidParameter(strconv.Itoa(int(in.MaxNumberOfMessages)), "MaxNumberOfMessages",
			"Must be between 1 and 10, if provided.")
	case in.WaitTimeSeconds < 0 || in.WaitTimeSeconds > maxWait:
		return invalidParameter(strconv.Itoa(int(in.WaitTimeSeconds)), "WaitTimeSeconds",
			"Must be >= 0 and <= 20, if provided.")
	case in.VisibilityTimeout < 0 || in.VisibilityTimeout > maxVisibility:
		return badVisibility(in.VisibilityTimeout)
	}

	return nil
}

func badVisibility(seconds int32) error {
	return invalidParameter(strconv.Itoa(int(seconds)), "VisibilityTimeout",
		"Must be between 0 and 43200, if provided.")
}

func wanted(in *sqs.ReceiveMessageInput) selection {
	s := selection{named: in.MessageAttributeNames}
	for _, name := range in.MessageSystemAttributeNames {
		s.system = append(s.system, string(name))
	}

	for _, name := range in.AttributeNames { //nolint:staticcheck // deprecated by AWS, and still in use
		s.system = append(s.system, string(name))
	}

	return s
}

// await receives messages. If there are none, it waits for the first message.
func (q *queue) await(
	ctx context.Context, most int, visibility, wait time.Duration,
) ([]delivery, error) {
	b := q.receive(most, visibility)
	if len(b.deliveries) > 0 || wait == 0 {
		return b.deliveries, nil
	}

	timeout, alarm := time.NewTimer(wait), newAlarm()
	defer timeout.Stop()

	for len(b.deliveries) == 0 {
		if timedOut, err := b.wait(ctx, q.cloud, alarm, timeout.C); timedOut || err != nil {
			return nil, err
		}

		b = q.receive(most, visibility)
	}

	return b.deliveries, nil
}

// newAlarm returns a stopped timer for wait.
func newAlarm() *time.Timer {
	t := time.NewTimer(maxVisibility * time.Second)
	t.Stop()

	return t
}

// wait returns when another receive may succeed.
func (b *batch) wait(ctx context.Context, c *Cloud, alarm *time.Timer, timeout <-chan time.Time) (
	timedOut bool, err error,
) {
	var due <-chan time.Time

	if b.hasDue {
		alarm.Reset(max(1, time.Duration(b.due-c.nanos())))
		defer alarm.Stop()

		due = alarm.C
	}

	select {
	case <-b.changed:
	case <-due:
	case <-timeout:
		return true, nil
	case <-ctx.Done():
		return false, &aws.RequestCanceledError{Err: ctx.Err()}
	}

	return false, nil
}

// DeleteMessage deletes a message by the receipt of its latest delivery. A FIFO queue rejects an expired receipt. A
// standard queue accepts it, but deletes nothing if the message was received again.
func (q *Queues) DeleteMessage(
	ctx context.Context, in *sqs.DeleteMessageInput, _ ...func(*sqs.Options),
) (*sqs.DeleteMessageOutput, error) {
	return do(ctx, q.cloud, opDeleteMessage, in, func() (*sqs.DeleteMessageOutput, error) {
		from, err := q.find(in.QueueUrl)
		if err != nil {
			return nil, err
		}

		if err := from.remove(aws.ToString(in.ReceiptHandle)); err != nil {
			return nil, err
		}

		return &sqs.DeleteMessageOutput{}, nil
	})
}

// DeleteMessageBatch is like DeleteMessage for up to 10 receipts. Each receipt has its own result.
func (q *Queues) DeleteMessageBatch(
	ctx context.Context, in *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options),
) (*sqs.DeleteMessageBatchOutput, error) {
	return do(ctx, q.cloud, opDeleteMessageBatch, in, func() (*sqs.DeleteMessageBatchOutput, error) {
		return q.deleteBatch(in)
	})
}

func (q *Queues) deleteBatch(in *sqs.DeleteMessageBatchInput) (*sqs.DeleteMessageBatchOutput, error) {
	from, err := q.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}

	err = checkBatch(in.Entries, func(e sqstypes.DeleteMessageBatchRequestEntry) *string { return e.Id })
	if err != nil {
		return nil, err
	}

	out := &sqs.DeleteMessageBatchOutput{Successful: make([]sqstypes.DeleteMessageBatchResultEntry, 0, len(in.Entries))}

	for _, e := range in.Entries {
		if err := from.remove(aws.ToString(e.ReceiptHandle)); err != nil {
			out.Failed = append(out.Failed, failed(e.Id, err))
		} else {
			out.Successful = append(out.Successful, sqstypes.DeleteMessageBatchResultEntry{Id: e.Id})
		}
	}

	return out, nil
}

// ChangeMessageVisibility makes a message in flight visible after a number of seconds, at most 12 hours after it was
// received. It rejects a message that is no longer in flight.
func (q *Queues) ChangeMessageVisibility(
	ctx context.Context, in *sqs.ChangeMessageVisibilityInput, _ ...func(*sqs.Options),
) (*sqs.ChangeMessageVisibilityOutput, error) {
	return do(ctx, q.cloud, opChangeMessageVisibility, in, func() (*sqs.ChangeMessageVisibilityOutput, error) {
		from, err := q.find(in.QueueUrl)
		if err != nil {
			return nil, err
		}

		if err := from.setVisibility(in.ReceiptHandle, in.VisibilityTimeout); err != nil {
			return nil, err
		}

		return &sqs.ChangeMessageVisibilityOutput{}, nil
	})
}

// ChangeMessageVisibilityBatch is like ChangeMessageVisibility for up to 10 receipts. Each receipt has its own result.
func (q *Queues) ChangeMessageVisibilityBatch(
	ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options),
) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	return do(ctx, q.cloud, opChangeMessageVisibilityBatch, in,
		func() (*sqs.ChangeMessageVisibilityBatchOutput, error) {
			from, err := q.find(in.QueueUrl)
			if err != nil {
				return nil, err
			}

			err = checkBatch(in.Entries, func(e sqstypes.ChangeMessageVisibilityBatchRequestEntry) *string {
				return e.Id
			})
			if err != nil {
				return nil, err
			}

			out := &sqs.ChangeMessageVisibilityBatchOutput{}

			for _, e := range in.Entries {
				if err := from.setVisibility(e.ReceiptHandle, e.VisibilityTimeout); err != nil {
					out.Failed = append(out.Failed, failed(e.Id, err))
				} else {
					out.Successful = append(out.Successful, sqstypes.ChangeMessageVisibilityBatchResultEntry{Id: e.Id})
				}
			}

			return out, nil
		})
}

func (q *queue) setVisibility(receipt *string, seconds int32) error {
	if seconds < 0 || seconds > maxVisibility {
		return badVisibility(seconds)
	}

	return q.changeVisibility(aws.ToString(receipt), time.Duration(seconds)*time.Second)
}

// GetQueueAttributes returns the numbers of visible, in-flight and delayed messages, the ARN and the settings of a
// queue. It reads every message.
func (q *Queues) GetQueueAttributes(
	ctx context.Context, in *sqs.GetQueueAttributesInput, _ ...func(*sqs.Options),
) (*sqs.GetQueueAttributesOutput, error) {
	return do(ctx, q.cloud, opGetQueueAttributes, in, func() (*sqs.GetQueueAttributesOutput, error) {
		of, err := q.find(in.QueueUrl)
		if err != nil {
			return nil, err
		}

		all := of.attributes()
		out := &sqs.GetQueueAttributesOutput{Attributes: map[string]string{}}

		for name, value := range all {
			if slices.Contains(in.AttributeNames, sqstypes.QueueAttributeNameAll) ||
				slices.Contains(in.AttributeNames, sqstypes.QueueAttributeName(name)) {
				out.Attributes[name] = value
			}
		}

		return out, nil
	})
}

func (q *queue) attributes() map[string]string {
	now := q.cloud.nanos()
	visible, inFlight, delayed := 0, 0, 0

	q.mu.Lock()
	for _, m := range q.messages {
		switch {
		case m.inFlight(now):
			inFlight++
		case m.visibleAt > now:
			delayed++
		default:
			visible++
		}
	}
	q.mu.Unlock()

	out := map[string]string{
		"ApproximateNumberOfMessages":           strconv.Itoa(visible),
		"ApproximateNumberOfMessagesNotVisible": strconv.Itoa(inFlight),
		"ApproximateNumberOfMessagesDelayed":    strconv.Itoa(delayed),
		"QueueArn":                              q.arn(),
		"MaximumMessageSize":                    strconv.Itoa(q.MaximumMessageSize),
		"VisibilityTimeout":                     strconv.Itoa(int(q.VisibilityTimeout / time.Second)),
	}
	if q.fifo {
		out["FifoQueue"] = "true"
	}

	if q.deadLetters != nil {
		out["RedrivePolicy"] = `{"deadLetterTargetArn":"` + q.deadLetters.arn() + `","maxReceiveCount":` +
			strconv.Itoa(q.MaxReceiveCount) + `}`
	}

	return out
}

// PurgeQueue deletes all messages of a queue, including messages in flight. It does not delete the deduplication IDs.
func (q *Queues) PurgeQueue(
	ctx context.Context, in *sqs.PurgeQueueInput, _ ...func(*sqs.Options),
) (*sqs.PurgeQueueOutput, error) {
	return do(ctx, q.cloud, opPurgeQueue, in, func() (*sqs.PurgeQueueOutput, error) {
		of, err := q.find(in.QueueUrl)
		if err != nil {
			return nil, err
		}
		of.purge()

		return &sqs.PurgeQueueOutput{}, nil
	})
}

// purge deletes the current messages. It does not delete messages that a schedule will send.
func (q *queue) purge() {
	now := q.cloud.nanos()

	q.mu.Lock()
	defer q.mu.Unlock()

	for id, m := range q.messages {
		if m.sent <= now {
			delete(q.messages, id)
			q.deliveryOrder.remove(m)
		}
	}

	q.notify()
}
