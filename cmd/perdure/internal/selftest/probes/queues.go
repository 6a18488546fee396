package probes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// queueProbes checks assumptions about SQS.
type queueProbes struct {
	clock
	*queueClient

	QueueURLs
}

func (p *queueProbes) checks() []Check {
	return []Check{
		{Name: "sqs-group-order", Assumptions: []string{"A1"}, Run: p.groupOrder},
		{Name: "sqs-sequence", Assumptions: []string{"A2"}, Run: p.sequence},
		{Name: "sqs-dedup", Assumptions: []string{"A3"}, Run: p.deduplication},
		{Name: "sqs-batch", Assumptions: []string{"A6"}, Run: p.batch},
		{Name: "sqs-errors", Assumptions: []string{"A7"}, Run: p.contentErrors},
		{Name: "sqs-size", Assumptions: []string{"A8"}, Run: p.size},
		{Name: "sqs-characters", Assumptions: []string{"A9"}, Run: p.characters},
		{Name: "sqs-delay", Assumptions: []string{"A10"}, Run: p.delay},
		{Name: "sqs-lock-limit", Assumptions: []string{"A11", "A12"}, Run: p.lockLimit},
		{Name: "sqs-receipt", Assumptions: []string{"A13"}, Run: p.receipt},
		{Name: "sqs-receive", Assumptions: []string{"A16"}, Run: p.receiveVisibility},
		{Name: "sqs-receive-count", Assumptions: []string{"A17"}, Run: p.receiveCount},
		{Name: "sqs-redrive", Assumptions: []string{"A18"}, Run: p.redrive},
		{Name: "sqs-groups", Assumptions: []string{"A24"}, Run: p.groups},
		{Name: "sqs-counts", Assumptions: []string{"A21"}, Run: p.counts},
		{Name: "sqs-purge", Assumptions: []string{"A20"}, Run: p.purge, Slow: true},
		{Name: "sqs-group-rate", Assumptions: []string{"A23"}, Run: p.groupRate, Slow: true},
	}
}

// slowChecks returns checks that wait for minutes.
func (p *queueProbes) slowChecks() []Check {
	return []Check{{Name: "sqs-fairness", Assumptions: []string{"A25"}, Run: p.fairness, Slow: true}}
}

const (
	longestDelay  = 900       // seconds
	longestLock   = 12 * 3600 // seconds
	mostBytes     = 1 << 20   // of a message
	shortLock     = 1         // seconds
	invalidValue  = "InvalidParameterValue"
	afterLock     = 2 * time.Second
	locked        = 30 // seconds
	outsideOfText = "\uFFFE"
)

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

// groups receives a message of a group of a standard queue while another one is in flight.
func (p *queueProbes) groups(ctx context.Context) (string, error) {
	const group, one, another = "groups", "groups-1", "groups-2"
	entries := []types.SendMessageBatchRequestEntry{message(one), message(another)}
	for i := range entries {
		entries[i].MessageGroupId = aws.String(group)
	}
	if _, err := p.send(ctx, p.StandardURL, entries...); err != nil {
		return "", undecided(err)
	}
	first, err := p.receiveAny(ctx, p.StandardURL, locked, one, another)
	if err != nil {
		return "", undecided(err)
	}
	next := one
	if aws.ToString(first.Body) == one {
		next = another
	}
	second, err := p.receive(ctx, p.StandardURL, next, locked)
	if err != nil {
		return "", fmt.Errorf("while another message of the group is in flight: %w", err)
	}
	return "two messages of a group are in flight",
		undecided(errors.Join(p.remove(ctx, p.StandardURL, first), p.remove(ctx, p.StandardURL, second)))
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

// permanentErrors are the codes of entries that SQS never accepts, as in package sqsqueue.
var permanentErrors = []string{"InvalidMessageContents", invalidValue, "InvalidAttributeValue"}

// temporaryErrors are codes of entries that SQS could not process.
var temporaryErrors = []string{"InternalError", "InternalFailure", "ServiceUnavailable"}

// contentErrors sends entries whose content SQS must reject, in a batch with a valid one.
func (p *queueProbes) contentErrors(ctx context.Context) (string, error) {
	const longestGroup = 128
	delayed, group, attribute := message("delayed"), message("group"), message("attribute")
	delayed.DelaySeconds = longestDelay + 1
	group.MessageGroupId = aws.String(strings.Repeat("g", longestGroup+1))
	attribute.MessageAttributes = map[string]types.MessageAttributeValue{
		"reason": {DataType: aws.String("String"), StringValue: aws.String(outsideOfText)},
	}
	out, err := p.send(ctx, p.StandardURL, message("valid"), message(outsideOfText), delayed, group, attribute)
	if out == nil {
		return "", fmt.Errorf("the batch is rejected: %w", err)
	}
	failed := map[string]*types.BatchResultErrorEntry{}
	for i := range out.Failed {
		failed[aws.ToString(out.Failed[i].Id)] = &out.Failed[i]
	}
	if f := failed["0"]; f != nil {
		return "", undecided(fmt.Errorf("the valid entry failed with %s", aws.ToString(f.Code)))
	}
	var seen []string
	for i, fault := range []string{"a character", "a delay", "a group", "an attribute"} {
		f := failed[strconv.Itoa(i+1)]
		if f == nil {
			seen = append(seen, fault+" accepted")
			continue
		}
		code := aws.ToString(f.Code)
		code = code[strings.LastIndexAny(code, ".#")+1:] // some codes start with the name of the service
		if !f.SenderFault || !slices.Contains(permanentErrors, code) {
			err := fmt.Errorf("an entry with %s failed with %s (fault of the sender: %t): %s", fault, code,
				f.SenderFault, aws.ToString(f.Message))
			if slices.Contains(temporaryErrors, code) || isThrottling(code) {
				err = undecided(err)
			}
			return "", err
		}
		seen = append(seen, fault+" "+code)
	}
	if len(failed) == 0 {
		return "", undecided(errors.New("all entries are accepted"))
	}
	return strings.Join(seen, ", "), nil
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
