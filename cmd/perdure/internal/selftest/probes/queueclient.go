package probes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/perdure/perdure/provider/dynamo"
)

// queueClient sends and receives messages.
type queueClient struct{ Queues dynamo.QueueAPI }

const (
	pollSeconds  = 2
	receiveTries = 10
)

// send sends messages in a batch. An error is that of the call, or of the first rejected entry.
func (c *queueClient) send(
	ctx context.Context, url string, entries ...types.SendMessageBatchRequestEntry,
) (*sqs.SendMessageBatchOutput, error) {
	return c.sendBatch(ctx, url, entries)
}

// sendOnce sends a message without the retries of the SDK.
func (c *queueClient) sendOnce(ctx context.Context, url string, m types.SendMessageBatchRequestEntry) error {
	_, err := c.sendBatch(ctx, url, []types.SendMessageBatchRequestEntry{m}, func(o *sqs.Options) {
		o.Retryer = aws.NopRetryer{}
	})
	return err
}

func (c *queueClient) sendBatch(
	ctx context.Context, url string, entries []types.SendMessageBatchRequestEntry, opts ...func(*sqs.Options),
) (*sqs.SendMessageBatchOutput, error) {
	for i := range entries {
		entries[i].Id = aws.String(strconv.Itoa(i))
	}
	out, err := c.Queues.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: entries}, opts...)
	if err != nil {
		return nil, fmt.Errorf("send: %w", err)
	}
	if len(out.Failed) > 0 {
		f := out.Failed[0]
		err = fmt.Errorf("send: %w", &smithy.GenericAPIError{
			Code: aws.ToString(f.Code), Message: aws.ToString(f.Message),
		})
	}
	return out, err
}

func message(body string) types.SendMessageBatchRequestEntry {
	return types.SendMessageBatchRequestEntry{MessageBody: &body}
}

// grouped returns a message of a group.
func grouped(body, group, deduplication string) types.SendMessageBatchRequestEntry {
	return types.SendMessageBatchRequestEntry{
		MessageBody: &body, MessageGroupId: &group, MessageDeduplicationId: &deduplication,
	}
}

// poll receives a message, or none.
func (c *queueClient) poll(ctx context.Context, url string, visibility int32) ([]types.Message, error) {
	return c.pollSome(ctx, url, visibility, 1)
}

// pollSome receives up to a number of messages.
func (c *queueClient) pollSome(ctx context.Context, url string, visibility, most int32) ([]types.Message, error) {
	out, err := c.Queues.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: &url, MaxNumberOfMessages: most, WaitTimeSeconds: pollSeconds, VisibilityTimeout: visibility,
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
	})
	if err != nil {
		return nil, fmt.Errorf("receive: %w", err)
	}
	return out.Messages, nil
}

// receive receives one message with a body. It deletes messages of earlier checks.
func (c *queueClient) receive(ctx context.Context, url, body string, visibility int32) (*types.Message, error) {
	return c.receiveAny(ctx, url, visibility, body)
}

// receiveAny is like receive, for one of several bodies.
func (c *queueClient) receiveAny(
	ctx context.Context, url string, visibility int32, bodies ...string,
) (*types.Message, error) {
	for range receiveTries {
		all, err := c.poll(ctx, url, visibility)
		if err != nil {
			return nil, undecided(err)
		}
		for i := range all {
			if slices.Contains(bodies, aws.ToString(all[i].Body)) {
				return &all[i], nil
			}
			if err := c.remove(ctx, url, &all[i]); err != nil {
				return nil, undecided(err)
			}
		}
	}
	return nil, fmt.Errorf("message %s does not arrive", strings.Join(bodies, " or "))
}

// remove deletes a message.
func (c *queueClient) remove(ctx context.Context, url string, m *types.Message) error {
	out, err := c.Queues.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{
		QueueUrl: &url,
		Entries:  []types.DeleteMessageBatchRequestEntry{{Id: aws.String("0"), ReceiptHandle: m.ReceiptHandle}},
	})
	if err == nil && len(out.Failed) > 0 {
		err = errors.New(aws.ToString(out.Failed[0].Code))
	}
	if err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	return nil
}

// lock changes the visibility timeout of a message. It returns the error of a rejected entry.
func (c *queueClient) lock(
	ctx context.Context, url string, m *types.Message, seconds int32,
) (*types.BatchResultErrorEntry, error) {
	out, err := c.Queues.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{
		QueueUrl: &url, Entries: []types.ChangeMessageVisibilityBatchRequestEntry{
			{Id: aws.String("0"), ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: seconds},
		},
	})
	if err != nil {
		return nil, undecided(fmt.Errorf("change visibility: %w", err))
	}
	if len(out.Failed) > 0 {
		return &out.Failed[0], nil
	}
	return nil, nil //nolint:nilnil // accepted
}

// sent sends a message and receives it with a visibility timeout.
func (c *queueClient) sent(
	ctx context.Context, url string, m *types.SendMessageBatchRequestEntry, visibility int32,
) (*types.Message, error) {
	if _, err := c.send(ctx, url, *m); err != nil {
		return nil, undecided(err)
	}
	return c.receive(ctx, url, *m.MessageBody, visibility)
}
