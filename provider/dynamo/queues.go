package dynamo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
)

// Quotas of SQS.
const (
	messageLimit = 1 << 20 // bytes, of a message and of a batch
	batchLimit   = 10      // messages
)

// bodyLimit is the maximum size of a message's body when it is first sent. It leaves space for Redrive, in case the
// message is recovered from a dead-letter queue.
const bodyLimit = messageLimit - 512

// mostOf returns the maximum size of a message's body.
func mostOf(p *provider.Redrive) int {
	if p != nil {
		return messageLimit
	}
	return bodyLimit
}

// entry is a message to send.
type entry struct {
	id    int64
	body  string
	group string // FIFO only
	dedup string // FIFO only
	fair  string // the message group of a fairness key, standard only
	loose bool   // FIFO only: a batch may contain several of its group, whose order can change if SQS accepts only some
	delay int32  // seconds, standard only
	known bool   // id is an event ID of the sending execution, and unique in its queue

	reason string // for dead letters: the error
}

// The message attribute with the error of a dead letter.
const (
	attrReason     = "error"
	attrReasonType = "String"
)

// sendAll sends to several queues concurrently, and checks the result of every entry (R9). It separates entries whose
// content SQS always rejects from those that may succeed later. It returns the accepted entries even if others failed.
// Entries of one message group are sent one after the other, so that they arrive in order despite failures, because SQS
// can accept a part of a batch (R24).
func (p *Provider) sendAll(ctx context.Context, queues outgoing) (out sending, err error) {
	for _, round := range roundsOf(queues) {
		if err := p.sendRound(ctx, round, &out); err != nil {
			return out, err
		}
	}
	return out, nil
}

// sendRound sends entries without an order between them.
func (p *Provider) sendRound(ctx context.Context, queues outgoing, out *sending) error {
	var all []sentBatch
	for _, q := range queues {
		for _, batch := range batches(q.entries) {
			all = append(all, sentBatch{q.url, batch})
		}
	}
	if len(all) != 1 {
		return p.sendBatches(ctx, all, out)
	}
	taken, err := p.sendSome(ctx, all[0].url, all[0].entries) // a turn usually sends one batch
	return out.add(all[0].url, taken, err)
}

// sendBatches sends batches concurrently.
func (p *Provider) sendBatches(ctx context.Context, all []sentBatch, out *sending) error {
	var mu sync.Mutex
	sends := make([]func() error, len(all))
	for i := range all {
		sends[i] = func() error {
			taken, err := p.sendSome(ctx, all[i].url, all[i].entries)
			mu.Lock()
			defer mu.Unlock()
			return out.add(all[i].url, taken, err)
		}
	}
	return awscall.Parallel(sends...)
}

// sentBatch is a batch for a queue, or the accepted part of one.
type sentBatch struct {
	url     string
	entries []entry
}

// outgoing holds the entries to send, by queue. It is a slice because a turn sends to few queues.
type outgoing []sentBatch

// add adds an entry for a queue. following is the number of entries that may follow.
func (o *outgoing) add(url string, e entry, following int) {
	for i := range *o {
		if q := &(*o)[i]; q.url == url {
			q.entries = append(q.entries, e)
			return
		}
	}
	*o = append(*o, sentBatch{url, append(make([]entry, 0, 1+following), e)})
}

// roundsOf splits entries so that each round has, of a message group, only entries that one batch may contain: one
// entry, or several loose ones. There is usually one round.
func roundsOf(queues outgoing) []outgoing {
	rounds := []outgoing{{}}
	for _, q := range queues {
		if len(q.entries) < 2 || q.entries[0].group == "" {
			rounds[0] = append(rounds[0], q)
			continue
		}
		sent := map[string]share{}
		for i := range q.entries {
			e := &q.entries[i]
			s := sent[e.group].with(e)
			sent[e.group] = s
			for s.round >= len(rounds) {
				rounds = append(rounds, nil)
			}
			rounds[s.round].add(q.url, *e, 0)
		}
	}
	for _, round := range rounds {
		for _, q := range round {
			if len(q.entries) > 1 && q.entries[0].loose { // entries of one group become adjacent
				slices.SortStableFunc(q.entries, func(a, b entry) int { return strings.Compare(a.group, b.group) })
			}
		}
	}
	return rounds
}

// share is the part of a message group in a round.
type share struct{ round, entries, bytes int }

// with returns the share after the next entry.
func (s share) with(e *entry) share {
	most := 1
	if e.loose {
		most = batchLimit
	}
	if s.entries == most || s.bytes+len(e.body) > messageLimit {
		s = share{round: s.round + 1}
	}
	return share{s.round, s.entries + 1, s.bytes + len(e.body)}
}

// sending is the result of sending batches: the accepted entries, and those that are always rejected.
type sending struct {
	taken   []sentBatch
	refused []refusedEntry
}

// add records the result of a batch. It returns the batch's error, unless the error only means that some entries are
// always rejected.
func (s *sending) add(url string, taken []entry, err error) error {
	s.taken = append(s.taken, sentBatch{url, taken})
	partial, ok := errors.AsType[*partialError](err)
	if !ok || len(partial.refused) == 0 {
		return err
	}
	s.refused = append(s.refused, partial.refused...)
	return nil
}

// without returns a batch without the remaining and the rejected entries.
func without(batch, left []entry, refused []refusedEntry) []entry {
	if len(left)+len(refused) == 0 {
		return batch
	}
	return slices.DeleteFunc(slices.Clone(batch), func(e entry) bool {
		return slices.ContainsFunc(left, func(l entry) bool { return l.id == e.id }) ||
			slices.ContainsFunc(refused, func(r refusedEntry) bool { return r.id == e.id })
	})
}

// sendInOrder sends to a FIFO queue, one batch after the other.
func (p *Provider) sendInOrder(ctx context.Context, url string, entries []entry) error {
	for _, batch := range batches(entries) {
		if err := p.sendBatch(ctx, url, batch); err != nil {
			return err
		}
	}
	return nil
}

// batches splits entries into batches that fit a request. Loose entries of one group stay together.
func batches(entries []entry) [][]entry {
	var cut [][]entry
	for from, size := 0, 0; from < len(entries); size = 0 {
		to := from
		for to < len(entries) {
			n, bytes := inseparable(entries[to:])
			if to > from && (to-from+n > batchLimit || size+bytes > messageLimit) {
				break
			}
			to += n
			size += bytes
		}
		cut = append(cut, entries[from:to])
		from = to
	}
	return cut
}

// inseparable returns the number of entries that must be in the same batch as the first one, and their size in bytes.
func inseparable(entries []entry) (n, bytes int) {
	n, bytes = 1, len(entries[0].body)
	for entries[0].loose && n < min(batchLimit, len(entries)) && entries[n].group == entries[0].group && bytes+len(entries[n].body) <= messageLimit {
		bytes += len(entries[n].body)
		n++
	}
	return n, bytes
}

// sendBatch sends one batch, and sends the entries again that SQS may accept later. If entries remain, it returns a
// partialError with the entries whose content SQS rejected.
func (p *Provider) sendBatch(ctx context.Context, url string, batch []entry) error {
	_, err := p.sendSome(ctx, url, batch)
	return err
}

// sendSome is sendBatch, and returns the accepted entries.
func (p *Provider) sendSome(ctx context.Context, url string, batch []entry) (taken []entry, err error) {
	left := batch
	var refused []refusedEntry
	err = awscall.Do(ctx, "SQS.SendMessageBatch", "", func() error {
		out, err := p.queues.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: sendEntries(left)})
		if err != nil {
			return err
		}

		faults, again := splitFailures(out.Failed)
		refused = append(refused, refusals(left, faults)...)
		left = remaining(left, again, faults)
		switch {
		case len(again) > 0:
			return notTaken(url, again)
		case len(refused) > 0:
			return &partialError{url: url, failed: len(refused), code: refused[0].code, message: refused[0].message, fault: true, refused: refused}
		default:
			return nil
		}
	})
	return without(batch, left, refused), err
}

// refusedEntry is an entry that SQS always rejects, and the error.
type refusedEntry struct {
	id            int64
	code, message string
}

// neverTaken holds the documented errors about an entry's content: invalid characters, a size or a parameter out of
// range. All other errors are temporary, whatever SenderFault is: a missing permission, an unusable key, throttling, a
// queue that is being replaced. They pass, or an operator removes the cause, and an activity must not fail because of
// them (R9).
var neverTaken = map[string]bool{"InvalidMessageContents": true, "InvalidParameterValue": true, "InvalidAttributeValue": true}

// isRefusal reports whether SQS always rejects an entry that failed with f.
func isRefusal(f *types.BatchResultErrorEntry) bool {
	code := aws.ToString(f.Code)
	// some codes start with the name of the service
	return f.SenderFault && neverTaken[code[strings.LastIndexAny(code, ".#")+1:]]
}

// splitFailures separates failures about the content of entries from others.
func splitFailures(failed []types.BatchResultErrorEntry) (faults, again []types.BatchResultErrorEntry) {
	for i := range failed {
		if isRefusal(&failed[i]) {
			faults = append(faults, failed[i])
		} else {
			again = append(again, failed[i])
		}
	}
	return faults, again
}

func refusals(batch []entry, faults []types.BatchResultErrorEntry) (refused []refusedEntry) {
	for _, f := range faults {
		if i, err := strconv.Atoi(aws.ToString(f.Id)); err == nil && i >= 0 && i < len(batch) {
			refused = append(refused, refusedEntry{id: batch[i].id, code: aws.ToString(f.Code), message: aws.ToString(f.Message)})
		}
	}
	return refused
}

func sendEntries(batch []entry) []types.SendMessageBatchRequestEntry {
	entries := make([]types.SendMessageBatchRequestEntry, len(batch))
	for i := range batch {
		e := &entries[i]
		e.Id = aws.String(strconv.Itoa(i))
		e.MessageBody = &batch[i].body
		e.DelaySeconds = batch[i].delay
		if batch[i].group != "" {
			e.MessageGroupId = &batch[i].group
			e.MessageDeduplicationId = &batch[i].dedup
		}
		if batch[i].fair != "" {
			e.MessageGroupId = &batch[i].fair
		}
		if batch[i].reason != "" {
			e.MessageAttributes = map[string]types.MessageAttributeValue{
				attrReason: {DataType: aws.String(attrReasonType), StringValue: &batch[i].reason},
			}
		}
	}
	return entries
}

// remaining returns the entries to send again. For a FIFO queue these are all entries from the first failure on, except
// rejected ones, to preserve the order. SQS drops duplicates of the entries that it has accepted.
func remaining(batch []entry, failed, refused []types.BatchResultErrorEntry) (rest []entry) {
	if len(failed) == 0 {
		return nil
	}
	again, never := indices(failed), indices(refused)
	fifo := batch[0].group != ""
	for i := range batch {
		if again[i] || fifo && len(rest) > 0 && !never[i] {
			rest = append(rest, batch[i])
		}
	}
	return rest
}

func indices(entries []types.BatchResultErrorEntry) map[int]bool {
	at := map[int]bool{}
	for _, e := range entries {
		if i, err := strconv.Atoi(aws.ToString(e.Id)); err == nil {
			at[i] = true
		}
	}
	return at
}

// partialError means that some entries of a batch were not accepted.
type partialError struct {
	url, code, message string
	failed             int
	fault              bool // the content is invalid: SQS always rejects the entry
	refused            []refusedEntry
}

func (e *partialError) Error() string {
	return fmt.Sprintf("%d messages for %s were rejected: %s %s", e.failed, e.url, e.code, e.message)
}

// RetryableError reports to the SDK's retryer whether the error can be retried.
func (e *partialError) RetryableError() bool { return !e.fault }

// notTaken returns the error for entries that may be accepted later.
func notTaken(url string, failed []types.BatchResultErrorEntry) *partialError {
	return &partialError{url: url, failed: len(failed), code: aws.ToString(failed[0].Code), message: aws.ToString(failed[0].Message)}
}

// entryError returns the error for entries with failures about locks. An expired lock cannot be restored.
func entryError(url string, failed []types.BatchResultErrorEntry) error {
	e := notTaken(url, failed)
	for _, f := range failed {
		e.fault = e.fault || f.SenderFault
	}
	return e
}

// DeleteRecords deletes records of a queue.
func (p *Provider) DeleteRecords(ctx context.Context, queue string, records ...provider.Record) error {
	url, err := p.queueURL(queue)
	if err != nil {
		return err
	}
	for batch := range slices.Chunk(records, batchLimit) {
		if err := p.deleteBatch(ctx, url, batch); err != nil {
			return err
		}
		for i := range batch {
			batch[i].EndHold()
		}
	}
	return nil
}

func (p *Provider) deleteBatch(ctx context.Context, url string, records []provider.Record) error {
	entries := make([]types.DeleteMessageBatchRequestEntry, len(records))
	for i := range records {
		entries[i] = types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: &records[i].ReceiptHandle}
	}
	return awscall.Do(ctx, "SQS.DeleteMessageBatch", "", func() error {
		out, err := p.queues.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &url, Entries: entries})
		if err != nil || len(out.Failed) == 0 {
			return err
		}
		return entryError(url, out.Failed)
	})
}

// AbandonRecords makes records visible again after a delay, rounded down to a second. It skips records whose lock has
// expired, because another consumer may hold them.
func (p *Provider) AbandonRecords(ctx context.Context, queue string, delay time.Duration, records ...provider.Record) error {
	url, err := p.queueURL(queue)
	if err != nil {
		return err
	}
	held := stillHeld(records, p.now())
	for i := range held {
		held[i].EndHold()
	}
	var errs []error
	for batch := range slices.Chunk(held, batchLimit) {
		errs = append(errs, p.abandonBatch(ctx, url, delay, batch))
	}
	return errors.Join(errs...)
}

func (p *Provider) abandonBatch(ctx context.Context, url string, delay time.Duration, records []provider.Record) error {
	entries := visibilityEntries(records, delay)
	return awscall.Do(ctx, "SQS.ChangeMessageVisibilityBatch", "", func() error {
		out, err := p.queues.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &url, Entries: entries})
		if err != nil || len(out.Failed) == 0 {
			return err
		}
		return entryError(url, out.Failed)
	})
}

func visibilityEntries(records []provider.Record, d time.Duration) []types.ChangeMessageVisibilityBatchRequestEntry {
	entries := make([]types.ChangeMessageVisibilityBatchRequestEntry, len(records))
	for i := range records {
		entries[i] = types.ChangeMessageVisibilityBatchRequestEntry{
			Id: aws.String(strconv.Itoa(i)), ReceiptHandle: &records[i].ReceiptHandle, VisibilityTimeout: int32(d / time.Second),
		}
	}
	return entries
}

// queueURL returns the URL of a queue by its name: a work queue, provider.QueueInbox or provider.QueueTimers.
func (p *Provider) queueURL(name string) (string, error) {
	switch name {
	case provider.QueueInbox:
		return p.hub.InboxURL, nil
	case provider.QueueTimers:
		return p.hub.TimersURL, nil
	}
	if url, ok := p.hub.WorkQueues[name]; ok {
		return url, nil
	}
	return "", fmt.Errorf("dynamo: hub %q: %w", p.hub.Name,
		&provider.FieldError{Field: "queue", Problem: fmt.Sprintf("%q does not exist", name)})
}

// sqsText returns JSON that SQS accepts. SQS rejects U+FFFE and U+FFFF, which JSON does not escape.
func sqsText(doc []byte) string {
	if bytes.Contains(doc, []byte("\uFFFE")) || bytes.Contains(doc, []byte("\uFFFF")) {
		doc = bytes.ReplaceAll(doc, []byte("\uFFFE"), []byte(`\ufffe`))
		doc = bytes.ReplaceAll(doc, []byte("\uFFFF"), []byte(`\uffff`))
	}
	return string(doc)
}
