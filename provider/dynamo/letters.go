package dynamo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/inbox"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsqueue"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
	"github.com/perdure/perdure/provider/dynamo/internal/workqueue"
)

var _ provider.DeadLetters = (*Provider)(nil)

// lettersWait is the wait time of a receive of dead letters. A long poll queries all servers of SQS, and a short one
// only some.
const lettersWait = time.Second

// DeadLetterQueues returns the names of the queues that have a dead-letter queue.
func (p *Provider) DeadLetterQueues() []string { return slices.Sorted(maps.Keys(p.queue.DeadLetters)) }

// CountDeadLetters reads the attributes of the queue.
func (p *Provider) CountDeadLetters(ctx context.Context, queue string) (visible, hidden int, err error) {
	url, err := p.queue.DeadLettersURL(queue)
	if err != nil {
		return 0, 0, err
	}
	attributes, err := p.queue.Attributes(ctx, url, types.QueueAttributeNameApproximateNumberOfMessages, types.QueueAttributeNameApproximateNumberOfMessagesNotVisible)
	if err != nil {
		return 0, 0, err
	}
	return attributes[types.QueueAttributeNameApproximateNumberOfMessages], attributes[types.QueueAttributeNameApproximateNumberOfMessagesNotVisible], nil
}

// ReceiveDeadLetters makes one long poll.
func (p *Provider) ReceiveDeadLetters(ctx context.Context, queue string, hide time.Duration) ([]provider.DeadLetter, error) {
	url, err := p.queue.DeadLettersURL(queue)
	if err != nil {
		return nil, err
	}
	messages, err := p.queue.ReceiveDeadLetters(ctx, url, hide, lettersWait)
	if err != nil {
		return nil, err
	}

	letters := make([]provider.DeadLetter, len(messages))
	for i := range messages {
		letters[i] = letterOf(queue, &messages[i])
	}
	return letters, nil
}

func letterOf(queue string, m *types.Message) provider.DeadLetter {
	d := provider.DeadLetter{Queue: queue, Record: sqsqueue.RecordOf(m), Subject: provider.SubjectOf(aws.ToString(m.Body))}
	if why, ours := m.MessageAttributes[sqsqueue.AttrReason]; ours {
		d.Reason = aws.ToString(why.StringValue)
	}
	if ms, err := strconv.ParseInt(m.Attributes[string(types.MessageSystemAttributeNameSentTimestamp)], 10, 64); err == nil {
		d.SentAt = time.UnixMilli(ms).UTC()
	}
	return d
}

func recordsOf(letters []provider.DeadLetter) []provider.Record {
	records := make([]provider.Record, len(letters))
	for i := range letters {
		records[i] = letters[i].Record
	}
	return records
}

// ReleaseDeadLetters makes dead letters visible.
func (p *Provider) ReleaseDeadLetters(ctx context.Context, queue string, letters ...provider.DeadLetter) error {
	url, err := p.queue.DeadLettersURL(queue)
	if err != nil {
		return err
	}
	var errs []error
	for batch := range slices.Chunk(recordsOf(letters), sqsqueue.BatchLimit) {
		errs = append(errs, p.queue.AbandonBatch(ctx, url, 0, batch))
	}
	return errors.Join(errs...)
}

// DropDeadLetters deletes dead letters.
func (p *Provider) DropDeadLetters(ctx context.Context, queue string, letters ...provider.DeadLetter) error {
	url, err := p.queue.DeadLettersURL(queue)
	if err != nil {
		return err
	}
	for batch := range slices.Chunk(recordsOf(letters), sqsqueue.BatchLimit) {
		if err := p.queue.DeleteBatch(ctx, url, batch); err != nil {
			return err
		}
	}
	return nil
}

// RedriveDeadLetters sends before it deletes: a duplicate does no harm, because each ID settles once, but a lost record
// would.
func (p *Provider) RedriveDeadLetters(ctx context.Context, queue string, letters ...provider.DeadLetter) error {
	url, err := p.queue.URL(queue)
	if err != nil {
		return err
	}
	again := make([]sqsqueue.Entry, len(letters))
	for i := range letters {
		if again[i], err = p.redriven(ctx, queue, &letters[i]); err != nil {
			return fmt.Errorf("dynamo: dead letter %s of queue %s: %w", letters[i].Record.ID, queue, err)
		}
		again[i].ID = int64(i)
	}

	var sent []string
	for _, batch := range sqsqueue.Batches(again) { // in order, because dead letters of the inbox belong to few instances
		var taken []sqsqueue.Entry
		taken, err = p.queue.SendAccepted(ctx, url, batch)
		for i := range taken {
			sent = append(sent, letters[taken[i].ID].Record.ID)
		}
		if err != nil {
			break
		}
	}
	if err == nil {
		err = p.DropDeadLetters(ctx, queue, letters...)
	}
	if err != nil && len(sent) > 0 {
		return &provider.SentError{IDs: sent, Err: err}
	}
	return err
}

// redriven returns a new record of a dead letter. A dead letter that this release cannot read is sent unchanged,
// because a later release may read it.
func (p *Provider) redriven(ctx context.Context, queue string, d *provider.DeadLetter) (sqsqueue.Entry, error) {
	switch queue {
	case provider.QueueInbox:
		if m, err := provider.DecodeMessage(d.Record.Body); err == nil {
			return p.messageAgain(m, d)
		}
		return asItIs(d), nil
	case provider.QueueTimers:
		if t, err := provider.DecodeTimer(d.Record.Body); err == nil {
			return p.timerAgain(t)
		}
	default:
		if w, err := provider.DecodeWorkItem(d.Record.Body); err == nil {
			return p.workAgain(ctx, w, d.Record.ID)
		}
	}
	if sqsqueue.IsFIFO(queue) {
		return asItIs(d), nil
	}
	return sqsqueue.Entry{Body: d.Record.Body}, nil
}

// asItIs returns a new record of an unreadable dead letter of a FIFO queue.
func asItIs(d *provider.DeadLetter) sqsqueue.Entry {
	return sqsqueue.Entry{Body: d.Record.Body, Group: d.Record.Group, Dedup: table.Digest("redriven", d.Record.ID)}
}

// messageAgain returns a new record of a message that the queue does not drop as a duplicate of the original.
func (p *Provider) messageAgain(m provider.Message, of *provider.DeadLetter) (sqsqueue.Entry, error) {
	if err := p.queue.CheckHub(&m.Hub); err != nil {
		return sqsqueue.Entry{}, err
	}
	m.Hub = p.queue.Hub
	m.Redrive = m.Redrive.NextMoved(of.Record.ID, of.SentAt)
	return inbox.Encode(&m)
}

// timerAgain returns a new record of a timer. The renewer creates its schedule if it needs one.
func (p *Provider) timerAgain(t provider.Timer) (sqsqueue.Entry, error) {
	if err := p.queue.CheckHub(&t.Hub); err != nil {
		return sqsqueue.Entry{}, err
	}
	entries, err := p.timers.Encode([]provider.Timer{t})
	if err != nil {
		return sqsqueue.Entry{}, err
	}
	return entries[0], nil
}

// workAgain returns a new record of a work item that may have run.
func (p *Provider) workAgain(ctx context.Context, w provider.WorkItem, recordID string) (sqsqueue.Entry, error) {
	if err := p.queue.CheckHub(&w.Hub); err != nil {
		return sqsqueue.Entry{}, err
	}
	tokens, err := p.tokens.Signer(ctx)
	if err != nil {
		return sqsqueue.Entry{}, err
	}
	w.Hub = p.queue.Hub
	w.PossibleDuplicate = true
	w.Redrive = w.Redrive.Next(recordID)
	w.Token = tokens.Sign(&w)
	return workqueue.Encode(&w)
}
