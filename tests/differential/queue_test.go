package differential_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// counter is a queue with the messages received from it.
type counter struct {
	queue

	ctx      context.Context //nolint:containedctx // the context of one test
	received []sqstypes.Message
}

// queueCall is a call to a queue. Its function returns the comparable parts of the response as text.
type queueCall struct {
	name string
	run  func(c *counter) string
}

func send(group, deduplication, body string, delay int32) queueCall {
	return queueCall{
		fmt.Sprintf("send %q %q %d bytes, delay %d", group, deduplication, len(body), delay),
		func(c *counter) string {
			out, err := c.SendMessage(c.ctx, &sqs.SendMessageInput{
				QueueUrl: &c.url, MessageBody: &body, MessageGroupId: optional(group),
				MessageDeduplicationId: optional(deduplication), DelaySeconds: delay,
			})
			if err != nil {
				return code(err)
			}

			return fmt.Sprintf("sent, %d digits", len(aws.ToString(out.SequenceNumber)))
		},
	}
}

// sendBatch sends a batch of messages with these IDs. Bodies and deduplication IDs contain the ID.
func sendBatch(fifo bool, ids ...string) queueCall {
	return queueCall{fmt.Sprintf("send batch %q", ids), func(c *counter) string {
		in := &sqs.SendMessageBatchInput{QueueUrl: &c.url, Entries: []sqstypes.SendMessageBatchRequestEntry{}}

		for _, id := range ids {
			e := sqstypes.SendMessageBatchRequestEntry{Id: &id, MessageBody: aws.String("body " + id)}
			if fifo {
				e.MessageGroupId, e.MessageDeduplicationId = aws.String("g"), aws.String("batch"+id)
			}

			in.Entries = append(in.Entries, e)
		}

		out, err := c.SendMessageBatch(c.ctx, in)
		if err != nil {
			return code(err)
		}

		text := ""
		for _, e := range out.Successful {
			text += " " + *e.Id
		}

		for _, e := range out.Failed {
			text += fmt.Sprintf(" %s:%s", *e.Id, *e.Code)
		}

		return text
	}}
}

// receive receives messages and returns them as text.
func receive(most, visibility, wait int32) queueCall {
	return queueCall{fmt.Sprintf("receive %d for %d s, wait %d s", most, visibility, wait), func(c *counter) string {
		out, err := c.ReceiveMessage(c.ctx, &sqs.ReceiveMessageInput{
			QueueUrl: &c.url, MaxNumberOfMessages: most, VisibilityTimeout: visibility, WaitTimeSeconds: wait,
			MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{"All"},
		})
		if err != nil {
			return code(err)
		}

		text := ""

		slices.SortStableFunc(out.Messages, order)

		for _, m := range out.Messages {
			c.received = append(c.received, m)
			text += fmt.Sprintf("[%s in %q, %q, count %s]", short(*m.Body), m.Attributes["MessageGroupId"],
				m.Attributes["MessageDeduplicationId"], m.Attributes["ApproximateReceiveCount"])
		}

		return text
	}}
}

func short(body string) string { return body[:min(20, len(body))] }

// remove deletes a message by its n-th receipt handle.
func remove(n int) queueCall {
	return queueCall{fmt.Sprint("delete ", n), func(c *counter) string {
		_, err := c.DeleteMessage(c.ctx, &sqs.DeleteMessageInput{
			QueueUrl: &c.url, ReceiptHandle: c.received[n].ReceiptHandle,
		})

		return code(err)
	}}
}

// setVisibility changes a visibility timeout by the n-th receipt handle.
func setVisibility(n int, seconds int32) queueCall {
	return queueCall{fmt.Sprintf("visibility of %d to %d s", n, seconds), func(c *counter) string {
		_, err := c.ChangeMessageVisibility(c.ctx, &sqs.ChangeMessageVisibilityInput{
			QueueUrl: &c.url, ReceiptHandle: c.received[n].ReceiptHandle, VisibilityTimeout: seconds,
		})

		return code(err)
	}}
}

// order sorts messages in the same way for both sides, because AWS guarantees an order only within a message group.
func order(a, b sqstypes.Message) int {
	group := "MessageGroupId"
	if a.Attributes[group] == "" {
		return strings.Compare(*a.Body, *b.Body)
	}

	return strings.Compare(a.Attributes[group], b.Attributes[group])
}
