package probes

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/provider/dynamo"
)

// queueProbes checks assumptions about SQS.
type queueProbes struct {
	clock

	Queues dynamo.QueueAPI
	QueueURLs
}

func (p *queueProbes) checks() []Check {
	return []Check{
		{Name: "sqs-group-order", Assumptions: []string{"A1"}, Run: p.groupOrder},
		{Name: "sqs-sequence", Assumptions: []string{"A2"}, Run: p.sequence},
		{Name: "sqs-dedup", Assumptions: []string{"A3"}, Run: p.deduplication},
		{Name: "sqs-batch", Assumptions: []string{"A6"}, Run: p.batch},
		{Name: "sqs-size", Assumptions: []string{"A8"}, Run: p.size},
		{Name: "sqs-characters", Assumptions: []string{"A9"}, Run: p.characters},
		{Name: "sqs-delay", Assumptions: []string{"A10"}, Run: p.delay},
		{Name: "sqs-lock-limit", Assumptions: []string{"A11", "A12"}, Run: p.lockLimit},
		{Name: "sqs-receipt", Assumptions: []string{"A13"}, Run: p.receipt},
		{Name: "sqs-receive", Assumptions: []string{"A16"}, Run: p.receiveVisibility},
		{Name: "sqs-receive-count", Assumptions: []string{"A17"}, Run: p.receiveCount},
		{Name: "sqs-redrive", Assumptions: []string{"A18"}, Run: p.redrive},
		{Name: "sqs-counts", Assumptions: []string{"A21"}, Run: p.counts},
		{Name: "sqs-purge", Assumptions: []string{"A20"}, Run: p.purge, Slow: true},
	}
}

const (
	longestDelay  = 900       // seconds
	longestLock   = 12 * 3600 // seconds
	mostBytes     = 1 << 20   // of a message
	shortLock     = 1         // seconds
	invalidValue  = "InvalidParameterValue"
	afterLock     = 2 * time.Second
	pollSeconds   = 2
	locked        = 30 // seconds
	receiveTries  = 10
	outsideOfText = "\uFFFE"
)

// send sends messages in a batch. An error is that of the call or of the first rejected entry.
func (p *queueProbes) send(
	ctx context.Context, url string, entries ...types.SendMessageBatchRequestEntry,
) (*sqs.SendMessageBatchOutput, error) {
	for i := range entries {
		entries[i].Id = aws.String(strconv.Itoa(i))
	}
	out, err := p.Queues.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: entries})
	if err != nil {
		return nil, fmt.Errorf("send: %w", err)
	}
	if len(out.Failed) > 0 {
		f := out.Failed[0]
		err = fmt.Errorf("send: %s: %s", aws.ToString(f.Code), aws.ToString(f.Message))
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

// poll receives messages once.
func (p *queueProbes) poll(ctx context.Context, url string, visibility int32) ([]types.Message, error) {
	out, err := p.Queues.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: &url, MaxNumberOfMessages: 1, WaitTimeSeconds: pollSeconds, VisibilityTimeout: visibility,
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
	})
	if err != nil {
		return nil, fmt.Errorf("receive: %w", err)
	}
	return out.Messages, nil
}

// receive receives one message with a body. It deletes messages of earlier checks.
func (p *queueProbes) receive(ctx context.Context, url, body string, visibility int32) (*types.Message, error) {
	for range receiveTries {
		all, err := p.poll(ctx, url, visibility)
		if err != nil {
			return nil, undecided(err)
		}
		for i := range all {
			if aws.ToString(all[i].Body) == body {
				return &all[i], nil
			}
			if err := p.remove(ctx, url, &all[i]); err != nil {
				return nil, undecided(err)
			}
		}
	}
	return nil, fmt.Errorf("message %q does not arrive", body)
}

// remove deletes a message.
func (p *queueProbes) remove(ctx context.Context, url string, m *types.Message) error {
	out, err := p.Queues.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{
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
func (p *queueProbes) lock(
	ctx context.Context, url string, m *types.Message, seconds int32,
) (*types.BatchResultErrorEntry, error) {
	out, err := p.Queues.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{
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
func (p *queueProbes) sent(
	ctx context.Context, url string, m *types.SendMessageBatchRequestEntry, visibility int32,
) (*types.Message, error) {
	if _, err := p.send(ctx, url, *m); err != nil {
		return nil, undecided(err)
	}
	return p.receive(ctx, url, *m.MessageBody, visibility)
}

func (p *queueProbes) groupOrder(ctx context.Context) (string, error) {
	const group = "order"
	if _, err := p.send(ctx, p.FIFOURL, grouped("order-1", group, "o1"), grouped("order-2", group, "o2")); err != nil {
		return "", undecided(err)
	}
	first, err := p.receive(ctx, p.FIFOURL, "order-1", locked)
	if err != nil {
		return "", err
	}
	if blocked, err := p.poll(ctx, p.FIFOURL, locked); err != nil || len(blocked) > 0 {
		return "", cmpErr(undecided(err), "the group delivers a message while another one is in flight")
	}
	if err := p.remove(ctx, p.FIFOURL, first); err != nil {
		return "", undecided(err)
	}
	second, err := p.receive(ctx, p.FIFOURL, "order-2", locked)
	if err != nil {
		return "", err
	}
	return "one message in flight", undecided(p.remove(ctx, p.FIFOURL, second))
}

// cmpErr returns err, or an error with the text.
func cmpErr(err error, text string) error {
	if err != nil {
		return err
	}
	return errors.New(text)
}

func (p *queueProbes) sequence(ctx context.Context) (string, error) {
	last := ""
	const messages = 5
	for i := range messages {
		n := strconv.Itoa(i)
		out, err := p.send(ctx, p.FIFOURL, grouped("sequence-"+n, "sequence", "s"+n))
		if err != nil {
			return "", undecided(err)
		}
		next := aws.ToString(out.Successful[0].SequenceNumber)
		if len(next) < len(last) || len(next) == len(last) && next <= last {
			return "", fmt.Errorf("sequence number %s follows %s", next, last)
		}
		last = next
	}
	return "last number " + last, nil
}

func (p *queueProbes) deduplication(ctx context.Context) (string, error) {
	m := grouped("dedup", "dedup", "same")
	received, err := p.sent(ctx, p.FIFOURL, &m, locked)
	if err != nil {
		return "", err
	}
	if err := p.remove(ctx, p.FIFOURL, received); err != nil {
		return "", undecided(err)
	}
	if _, err := p.send(ctx, p.FIFOURL, m); err != nil {
		return "", fmt.Errorf("the repetition is rejected: %w", err)
	}
	for range receiveTries {
		again, err := p.poll(ctx, p.FIFOURL, locked)
		if err != nil {
			return "", undecided(err)
		}
		if len(again) == 0 {
			return "repetition dropped after the delete", nil
		}
		if aws.ToString(again[0].Body) == "dedup" {
			return "", errors.New("the repetition arrives")
		}
		if err := p.remove(ctx, p.FIFOURL, &again[0]); err != nil {
			return "", undecided(err)
		}
	}
	return "", undecided(errors.New("messages of other checks do not end"))
}

func (p *queueProbes) batch(ctx context.Context) (string, error) {
	invalid := message("delayed")
	invalid.DelaySeconds = longestDelay + 1
	out, err := p.send(ctx, p.StandardURL, message("valid"), invalid)
	switch {
	case out == nil:
		return "", fmt.Errorf("the batch is rejected: %w", err)
	case len(out.Successful) != 1 || len(out.Failed) != 1 || aws.ToString(out.Failed[0].Id) != "1":
		return "", fmt.Errorf("%d entries accepted, %d rejected", len(out.Successful), len(out.Failed))
	}
	return "the invalid entry failed with " + aws.ToString(out.Failed[0].Code), nil
}

func (p *queueProbes) size(ctx context.Context) (string, error) {
	if _, err := p.send(ctx, p.StandardURL, message(strings.Repeat("x", mostBytes))); err != nil {
		return "", fmt.Errorf("1 MiB is rejected: %w", err)
	}
	if _, err := p.send(ctx, p.StandardURL, message(strings.Repeat("x", mostBytes+1))); err == nil {
		return "", errors.New("more than 1 MiB is accepted")
	}
	return "1 MiB accepted, more rejected", nil
}

func (p *queueProbes) characters(ctx context.Context) (string, error) {
	m := message("\t\n\r \u007f\u0085\u2028\ufffd\U00010000\U0010fffd")
	if _, err := p.sent(ctx, p.StandardURL, &m, locked); err != nil {
		return "", err
	}
	if _, err := p.send(ctx, p.StandardURL, message(outsideOfText)); err == nil {
		return "", errors.New("U+FFFE is accepted")
	}
	return "U+FFFE rejected", nil
}

func (p *queueProbes) delay(ctx context.Context) (string, error) {
	m := message("later")
	m.DelaySeconds = longestDelay
	if _, err := p.send(ctx, p.StandardURL, m); err != nil {
		return "", fmt.Errorf("900 s are rejected: %w", err)
	}
	m.DelaySeconds++
	if _, err := p.send(ctx, p.StandardURL, m); err == nil {
		return "", errors.New("901 s are accepted")
	}
	ordered := grouped("later", "delay", "later")
	ordered.DelaySeconds = 1
	if _, err := p.send(ctx, p.FIFOURL, ordered); err == nil {
		return "", errors.New("a FIFO queue accepts the delay of a message")
	}
	return "900 s accepted, 901 s rejected", nil
}

func (p *queueProbes) lockLimit(ctx context.Context) (string, error) {
	m := message("lock")
	received, err := p.sent(ctx, p.StandardURL, &m, locked)
	if err != nil {
		return "", err
	}
	if err := p.Sleep(ctx, afterLock); err != nil {
		return "", undecided(err)
	}
	refused, err := p.lock(ctx, p.StandardURL, received, longestLock)
	switch {
	case err != nil:
		return "", err
	case refused == nil:
		return "", errors.New("a lock of more than 12 hours is accepted")
	case aws.ToString(refused.Code) != invalidValue ||
		!strings.Contains(aws.ToString(refused.Message), "VisibilityTimeout"):
		return "", fmt.Errorf("got %s: %s", aws.ToString(refused.Code), aws.ToString(refused.Message))
	}
	return "rejected with " + invalidValue, undecided(p.remove(ctx, p.StandardURL, received))
}

func (p *queueProbes) receipt(ctx context.Context) (string, error) {
	m := grouped("receipt", "receipt", "r")
	received, err := p.sent(ctx, p.FIFOURL, &m, shortLock)
	if err != nil {
		return "", err
	}
	if err := p.Sleep(ctx, afterLock); err != nil {
		return "", undecided(err)
	}
	if err := p.remove(ctx, p.FIFOURL, received); err == nil {
		return "", errors.New("an expired receipt deletes the message")
	}
	again, err := p.receive(ctx, p.FIFOURL, "receipt", locked)
	if err != nil {
		return "", err
	}
	return "expired receipt rejected", undecided(p.remove(ctx, p.FIFOURL, again))
}

func (p *queueProbes) receiveVisibility(ctx context.Context) (string, error) {
	m := message("visibility")
	first, err := p.sent(ctx, p.StandardURL, &m, shortLock)
	if err != nil {
		return "", err
	}
	if err := p.Sleep(ctx, afterLock); err != nil {
		return "", undecided(err)
	}
	second, err := p.receive(ctx, p.StandardURL, "visibility", locked)
	if err != nil {
		return "", err
	}
	if aws.ToString(first.MessageId) != aws.ToString(second.MessageId) {
		return "", errors.New("another message arrived")
	}
	return "visible after 1 s", undecided(p.remove(ctx, p.StandardURL, second))
}

func (p *queueProbes) receiveCount(ctx context.Context) (string, error) {
	m := message("count")
	received, err := p.sent(ctx, p.StandardURL, &m, locked)
	if err != nil {
		return "", err
	}
	for n := 1; ; n++ {
		count := received.Attributes[string(types.MessageSystemAttributeNameApproximateReceiveCount)]
		if count != strconv.Itoa(n) {
			return "", fmt.Errorf("receive %d has the count %s", n, count)
		}
		const receives = 3
		if n == receives {
			return "count 3 after two releases", undecided(p.remove(ctx, p.StandardURL, received))
		}
		if refused, err := p.lock(ctx, p.StandardURL, received, 0); err != nil || refused != nil {
			return "", cmpErr(err, "the release is rejected")
		}
		if received, err = p.receive(ctx, p.StandardURL, "count", locked); err != nil {
			return "", err
		}
	}
}
