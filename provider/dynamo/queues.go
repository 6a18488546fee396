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
)

// Quotas of SQS.
const (
	messageLimit = 1 << 20 // bytes, of a message and of a batch
	batchLimit   = 10      // messages
)

// bodyLimit is what a message may have that is sent for the first time: should it be picked up from the dead letters, there is room
// to say so.
const bodyLimit = messageLimit - 512

// mostOf is the limit of a message's body.
func mostOf(p *provider.PickedUp) int {
	if p != nil {
		return messageLimit
	}
	return bodyLimit
}

// parallelSends bounds how many batches are under way at once for one turn.
const parallelSends = 16

// entry is a message to send.
type entry struct {
	id    int64
	body  string
	group string // FIFO only
	dedup string // FIFO only
	delay int32  // seconds, standard only
	known bool   // id is that of an event of the execution that sends it, and tells it from the others for its queue

	reason string // dead letters: what was wrong
}

// What a dead letter's reason is, as a message attribute.
const (
	attrReason     = "error"
	attrReasonType = "String"
)

// sendAll sends to several standard queues, in parallel, and checks every entry's result (R9). Entries that SQS refuses for
// what they are, and always will, are apart from what may succeed another time. What was taken is told whatever became of the rest.
func (p *Provider) sendAll(ctx context.Context, queues outgoing) (sending, error) {
	var all []sentBatch
	for _, q := range queues {
		for _, batch := range batches(q.entries) {
			all = append(all, sentBatch{q.url, batch})
		}
	}
	if len(all) != 1 {
		return p.sendSide(ctx, all)
	}
	var out sending // one batch is what a turn sends as a rule
	taken, err := p.sendSome(ctx, all[0].url, all[0].entries)
	err = out.add(all[0].url, taken, err)
	return out, err
}

// sendSide sends batches side by side.
func (p *Provider) sendSide(ctx context.Context, all []sentBatch) (out sending, err error) {
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
	err = together(sends...)
	return out, err
}

// sentBatch is a batch for a queue, or what it has taken of one.
type sentBatch struct {
	url     string
	entries []entry
}

// outgoing is what is to be sent, by queue: a turn sends to few.
type outgoing []sentBatch

// add adds an entry for a queue.
func (o *outgoing) add(url string, e entry) {
	for i := range *o {
		if q := &(*o)[i]; q.url == url {
			q.entries = append(q.entries, e)
			return
		}
	}
	*o = append(*o, sentBatch{url, []entry{e}})
}

// sending is what became of batches: what was taken, and what never will be.
type sending struct {
	taken   []sentBatch
	refused []refusedEntry
}

// add takes over what became of a batch, and returns what is an error of it: not that some is refused for good.
func (s *sending) add(url string, taken []entry, err error) error {
	s.taken = append(s.taken, sentBatch{url, taken})
	partial, ok := errors.AsType[*partialError](err)
	if !ok || len(partial.refused) == 0 {
		return err
	}
	s.refused = append(s.refused, partial.refused...)
	return nil
}

// without is a batch without what is left of it, and what was refused.
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

// together runs fs at once, a bounded number at a time, and joins their errors. The last runs where it is called.
func together(fs ...func() error) error { return atOnce(parallelSends, fs) }

// atOnce is together with so many at a time.
func atOnce(most int, fs []func() error) error {
	switch len(fs) {
	case 0:
		return nil
	case 1:
		return fs[0]()
	}
	var wg sync.WaitGroup
	errs := make([]error, len(fs))
	places := make(chan struct{}, most)
	last := len(fs) - 1
	for i, f := range fs[:last] {
		places <- struct{}{}
		wg.Go(func() {
			errs[i] = f()
			<-places
		})
	}
	errs[last] = fs[last]()
	wg.Wait()
	return errors.Join(errs...)
}

// batches cuts entries into runs that fit a request.
func batches(entries []entry) [][]entry {
	var cut [][]entry
	for from, size := 0, 0; from < len(entries); size = 0 {
		to := from
		for to < len(entries) && to-from < batchLimit && size+len(entries[to].body) <= messageLimit {
			size += len(entries[to].body)
			to++
		}
		if to == from {
			to++ // over the limit by itself: SQS will say so
		}
		cut, from = append(cut, entries[from:to]), to
	}
	return cut
}

// sendBatch sends one batch, and again those entries that SQS may take another time. What is left then is a partialError with the
// entries that it refused for what they are.
func (p *Provider) sendBatch(ctx context.Context, url string, batch []entry) error {
	_, err := p.sendSome(ctx, url, batch)
	return err
}

// sendSome is sendBatch that returns what was taken.
func (p *Provider) sendSome(ctx context.Context, url string, batch []entry) (taken []entry, err error) {
	left := batch
	var refused []refusedEntry
	err = call(ctx, "SQS.SendMessageBatch", "", func() error {
		out, err := p.queues.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: sendEntries(left)})
		if err != nil {
			return err
		}
		faults, again := blame(out.Failed)
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

// refusedEntry is an entry that SQS will never take, and what it said.
type refusedEntry struct {
	id            int64
	code, message string
}

// neverTaken are the documented errors of an entry that are about what it holds: characters that SQS does not take, a size or a
// parameter out of its range. Any other is of the moment, whoever SQS says is at fault: a role that lacks a right, a key that cannot
// be used, throttling, a queue that is being replaced. It passes, or somebody has to see to it; no activity has failed for it (R9).
var neverTaken = map[string]bool{"InvalidMessageContents": true, "InvalidParameterValue": true, "InvalidAttributeValue": true}

// isRefusal reports whether SQS will never take an entry that failed so.
func isRefusal(f *types.BatchResultErrorEntry) bool {
	code := aws.ToString(f.Code)
	return f.SenderFault && neverTaken[code[strings.LastIndexAny(code, ".#")+1:]] // some name the service before the code
}

// blame tells the failures that are for what the entries hold from those that are not.
func blame(failed []types.BatchResultErrorEntry) (faults, again []types.BatchResultErrorEntry) {
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
		e.Id, e.MessageBody, e.DelaySeconds = aws.String(strconv.Itoa(i)), &batch[i].body, batch[i].delay
		if batch[i].group != "" {
			e.MessageGroupId, e.MessageDeduplicationId = &batch[i].group, &batch[i].dedup
		}
		if batch[i].reason != "" {
			e.MessageAttributes = map[string]types.MessageAttributeValue{
				attrReason: {DataType: aws.String(attrReasonType), StringValue: &batch[i].reason},
			}
		}
	}
	return entries
}

// remaining is what to send again. Of a FIFO queue's messages it is all from the first that failed on, but for those that
// are refused: the others behind it are in already, and a repeat is swallowed, but then none of them has overtaken it for good.
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

// partialError: a batch of which some entries were not taken.
type partialError struct {
	url, code, message string
	failed             int
	fault              bool // the sender's: the same entry will never be taken
	refused            []refusedEntry
}

func (e *partialError) Error() string {
	return fmt.Sprintf("%d messages for %s were not taken: %s %s", e.failed, e.url, e.code, e.message)
}

// RetryableError is read by the SDK's classification.
func (e *partialError) RetryableError() bool { return !e.fault }

// notTaken: entries that may be taken another time.
func notTaken(url string, failed []types.BatchResultErrorEntry) *partialError {
	return &partialError{url: url, failed: len(failed), code: aws.ToString(failed[0].Code), message: aws.ToString(failed[0].Message)}
}

// entryError: entries that are about locks. One that is over does not come back.
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
		entries[i] = types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: &records[i].Lock}
	}
	return call(ctx, "SQS.DeleteMessageBatch", "", func() error {
		out, err := p.queues.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &url, Entries: entries})
		if err != nil || len(out.Failed) == 0 {
			return err
		}
		return entryError(url, out.Failed)
	})
}

// AbandonRecords makes records visible again after a delay, rounded down to a second. Those whose lock is over are left alone:
// they may be somebody else's.
func (p *Provider) AbandonRecords(ctx context.Context, queue string, delay time.Duration, records ...provider.Record) error {
	url, err := p.queueURL(queue)
	if err != nil {
		return err
	}
	held, _ := stillHeld(records, p.now())
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
	return call(ctx, "SQS.ChangeMessageVisibilityBatch", "", func() error {
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
			Id: aws.String(strconv.Itoa(i)), ReceiptHandle: &records[i].Lock, VisibilityTimeout: int32(d / time.Second),
		}
	}
	return entries
}

// queueURL finds a queue by its name: a work queue, or one of provider's QueueXxx.
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
	return "", fmt.Errorf("dynamo: hub %q: %w", p.hub.Name, &provider.FieldError{Field: "queue", Problem: fmt.Sprintf("%q is unknown", name)})
}

// sqsText is JSON as SQS takes it: of the characters that JSON leaves as they are, SQS refuses U+FFFE and U+FFFF.
func sqsText(doc []byte) string {
	if bytes.Contains(doc, []byte("\uFFFE")) || bytes.Contains(doc, []byte("\uFFFF")) {
		doc = bytes.ReplaceAll(doc, []byte("\uFFFE"), []byte(`\ufffe`))
		doc = bytes.ReplaceAll(doc, []byte("\uFFFF"), []byte(`\uffff`))
	}
	return string(doc)
}
