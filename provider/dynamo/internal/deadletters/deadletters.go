// Package deadletters lists, redrives and deletes the dead letters of a hub, and finds the records that SQS has moved
// to dead-letter queues.
package deadletters

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/inbox"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsqueue"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
	"github.com/perdure/perdure/provider/dynamo/internal/timers"
	"github.com/perdure/perdure/provider/dynamo/internal/tokens"
	"github.com/perdure/perdure/provider/dynamo/internal/workqueue"
	"github.com/perdure/perdure/provider/wire"
)

// DeadLetters processes the dead letters of a hub. It is safe for concurrent use.
type DeadLetters struct {
	queue  *sqsqueue.Queues
	timers *timers.Timers
	tokens *tokens.Keys
}

// New returns the dead letters of a hub.
func New(q *sqsqueue.Queues, tm *timers.Timers, keys *tokens.Keys) *DeadLetters {
	return &DeadLetters{queue: q, timers: tm, tokens: keys}
}

// receiveWait is the wait time of a receive of dead letters. A long poll queries all servers of SQS, but a short poll
// queries only some.
const receiveWait = time.Second

// ReceiveDeadLetters makes one long poll.
func (dd *DeadLetters) ReceiveDeadLetters(
	ctx context.Context, queue string, hide time.Duration,
) ([]provider.DeadLetter, error) {
	url, err := dd.queue.Dead().URL(queue)
	if err != nil {
		return nil, err
	}
	messages, err := dd.queue.Dead().Receive(ctx, url, hide, receiveWait)
	if err != nil {
		return nil, err
	}

	letters := make([]provider.DeadLetter, len(messages))
	for i := range messages {
		letters[i] = decode(queue, &messages[i])
	}
	return letters, nil
}

func decode(queue string, m *types.Message) provider.DeadLetter {
	d := provider.DeadLetter{
		Queue:   queue,
		Record:  sqsqueue.RecordOf(m),
		Subject: wire.SubjectOf(aws.ToString(m.Body)),
	}
	if why, ours := m.MessageAttributes[sqsqueue.AttrReason]; ours {
		d.Reason = aws.ToString(why.StringValue)
	}
	if ms, err := strconv.ParseInt(
		m.Attributes[string(types.MessageSystemAttributeNameSentTimestamp)], 10, 64,
	); err == nil {
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
func (dd *DeadLetters) ReleaseDeadLetters(ctx context.Context, queue string, letters ...provider.DeadLetter) error {
	url, err := dd.queue.Dead().URL(queue)
	if err != nil {
		return err
	}
	var errs []error
	for batch := range slices.Chunk(recordsOf(letters), sqsqueue.BatchLimit) {
		errs = append(errs, dd.queue.AbandonBatch(ctx, url, 0, batch))
	}
	return errors.Join(errs...)
}

// DropDeadLetters deletes dead letters.
func (dd *DeadLetters) DropDeadLetters(ctx context.Context, queue string, letters ...provider.DeadLetter) error {
	url, err := dd.queue.Dead().URL(queue)
	if err != nil {
		return err
	}
	for batch := range slices.Chunk(recordsOf(letters), sqsqueue.BatchLimit) {
		if err := dd.queue.DeleteBatch(ctx, url, batch); err != nil {
			return err
		}
	}
	return nil
}

// RedriveDeadLetters sends each record before it deletes the dead letter, because a lost record is worse than a
// duplicate. Each ID settles once, but the activity of a duplicate runs again unless it has settled, and after five
// minutes an event without an ID applies twice.
func (dd *DeadLetters) RedriveDeadLetters(ctx context.Context, queue string, letters ...provider.DeadLetter) error {
	url, err := dd.queue.URL(queue)
	if err != nil {
		return err
	}
	again := make([]sqsqueue.Entry, len(letters))
	for i := range letters {
		if again[i], err = dd.newRecord(ctx, queue, &letters[i]); err != nil {
			return fmt.Errorf("dynamo: dead letter %s of queue %s: %w", letters[i].Record.ID, queue, err)
		}
		again[i].ID = int64(i)
	}

	var sent []string
	// in order, because dead letters of the inbox belong to few instances
	for _, batch := range sqsqueue.Batches(again) {
		var accepted []sqsqueue.Entry
		accepted, err = dd.queue.SendAccepted(ctx, url, batch)
		for i := range accepted {
			sent = append(sent, letters[accepted[i].ID].Record.ID)
		}
		if err != nil {
			break
		}
	}
	if err == nil {
		err = dd.DropDeadLetters(ctx, queue, letters...)
	}
	if err != nil && len(sent) > 0 {
		return &provider.SentError{IDs: sent, Err: err}
	}
	return err
}

// newRecord returns a new record of a dead letter. A dead letter that this release cannot read is sent unchanged,
// because a later release may read it.
func (dd *DeadLetters) newRecord(ctx context.Context, queue string, d *provider.DeadLetter) (sqsqueue.Entry, error) {
	switch queue {
	case provider.QueueInbox:
		if m, err := wire.DecodeMessage(d.Record.Body); err == nil {
			return dd.newMessage(m, d)
		}
		return unchangedRecord(d), nil
	case provider.QueueTimers:
		if t, err := wire.DecodeTimer(d.Record.Body); err == nil {
			return dd.newTimer(t)
		}
	default:
		if w, err := wire.DecodeWorkItem(d.Record.Body); err == nil {
			return dd.newWorkItem(ctx, w, d.Record.ID)
		}
	}
	if sqsqueue.IsFIFO(queue) {
		return unchangedRecord(d), nil
	}
	return sqsqueue.Entry{Body: d.Record.Body}, nil
}

// unchangedRecord returns a new record of an unreadable dead letter of a FIFO queue.
func unchangedRecord(d *provider.DeadLetter) sqsqueue.Entry {
	return sqsqueue.Entry{Body: d.Record.Body, Group: d.Record.Group, Dedup: table.Digest("redriven", d.Record.ID)}
}

// newMessage returns a new record of a message that the queue does not drop as a duplicate of the original.
func (dd *DeadLetters) newMessage(m provider.Message, of *provider.DeadLetter) (sqsqueue.Entry, error) {
	if err := dd.queue.CheckHub(&m.Hub); err != nil {
		return sqsqueue.Entry{}, err
	}
	m.Hub = dd.queue.Hub
	m.Redrive = m.Redrive.NextMoved(of.Record.ID, of.SentAt)
	return inbox.Encode(&m)
}

// newTimer returns a new record of a timer. The renewer creates its schedule if it needs one.
func (dd *DeadLetters) newTimer(t provider.Timer) (sqsqueue.Entry, error) {
	if err := dd.queue.CheckHub(&t.Hub); err != nil {
		return sqsqueue.Entry{}, err
	}
	entries, err := dd.timers.Encode([]provider.Timer{t})
	if err != nil {
		return sqsqueue.Entry{}, err
	}
	return entries[0], nil
}

// newWorkItem returns a new record of a work item that may have run.
func (dd *DeadLetters) newWorkItem(ctx context.Context, w provider.WorkItem, recordID string) (sqsqueue.Entry, error) {
	if err := dd.queue.CheckHub(&w.Hub); err != nil {
		return sqsqueue.Entry{}, err
	}
	tokens, err := dd.tokens.Signer(ctx)
	if err != nil {
		return sqsqueue.Entry{}, err
	}
	w.Hub = dd.queue.Hub
	w.PossibleDuplicate = true
	w.Redrive = w.Redrive.Next(recordID)
	w.Token = tokens.Sign(&w)
	return workqueue.Encode(&w)
}

// maxMovedRecords is the maximum number of dead letters of a queue that one call reads. Dead letters that wait for an
// operator stay in the queue for days.
const maxMovedRecords = 1000

// hideTime is the time for which received dead letters are invisible, unless the call makes them visible at its end. It
// exceeds the time of a call, so that a call receives no dead letter twice, and is at most the time until the next
// call.
const hideTime = time.Minute

// DeadLetteredRecords receives dead letters and yields those without the attribute that the provider adds to its own
// copies. At the end it makes the copies visible again, so that an operator who lists or drops them at that time finds
// them. It does not wait. If a short poll of SQS misses a dead letter, the next call finds it. In the dead-letter
// queue of the inbox, more than 10 copies of an instance's messages (poison, corrupt) hide later dead letters of that
// instance. An operator must redrive or drop them.
func (dd *DeadLetters) DeadLetteredRecords(ctx context.Context) iter.Seq2[provider.DeadLetteredRecord, error] {
	return func(yield func(provider.DeadLetteredRecord, error) bool) {
		for _, queue := range dd.queue.Dead().Names() {
			for m, err := range dd.movedRecords(ctx, queue) {
				if !yield(m, err) {
					return
				}
			}
		}
	}
}

func (dd *DeadLetters) movedRecords(ctx context.Context, queue string) iter.Seq2[provider.DeadLetteredRecord, error] {
	return func(yield func(provider.DeadLetteredRecord, error) bool) {
		var copies []provider.DeadLetter
		defer func() { _ = dd.ReleaseDeadLetters(ctx, queue, copies...) }() // otherwise they reappear after hideTime
		for seen := 0; seen < maxMovedRecords; {
			letters, err := dd.queue.Dead().Receive(ctx, dd.queue.DeadLetters[queue], hideTime, 0)
			if err != nil {
				yield(provider.DeadLetteredRecord{}, fmt.Errorf("dynamo: receive dead letters of queue %s: %w", queue,
					err))
				return
			}
			if len(letters) == 0 {
				return
			}
			seen += len(letters)
			for i := range letters {
				if _, ours := letters[i].MessageAttributes[sqsqueue.AttrReason]; ours {
					copies = append(copies, provider.DeadLetter{Record: provider.Record{
						ReceiptHandle: aws.ToString(letters[i].ReceiptHandle),
					}})
					continue
				}
				if !yield(provider.DeadLetteredRecord{Queue: queue, Record: sqsqueue.RecordOf(&letters[i])}, nil) {
					return
				}
			}
		}
	}
}

// AnnotateDeadLetter sends the copy before it deletes the original. A duplicate is harmless, but a lost record is not.
// The copy has its own message group, because in the group of its instance it would block later dead letters.
func (dd *DeadLetters) AnnotateDeadLetter(ctx context.Context, m provider.DeadLetteredRecord, why error) error {
	kept := table.Digest("kept", m.Record.ID)
	if err := dd.queue.Dead().PutCopy(
		ctx, m.Queue, provider.Unreadable{Record: m.Record, Err: why}, kept, kept,
	); err != nil {
		return err
	}
	return dd.queue.DeleteBatch(ctx, dd.queue.DeadLetters[m.Queue], []provider.Record{m.Record})
}
