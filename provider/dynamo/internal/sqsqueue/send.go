package sqsqueue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
)

// SendAll sends to several queues concurrently, and checks the result of every entry (R9). It separates entries whose
// content SQS always rejects from those that may succeed later. It returns the accepted entries even if others failed.
// Entries of one message group are sent one after the other, because SQS can accept a part of a batch. They then arrive
// in order despite failures (R24).
func (qs *Queues) SendAll(ctx context.Context, queues Outgoing) (out SendResult, err error) {
	for _, round := range RoundsOf(queues) {
		if err := qs.sendRound(ctx, round, &out); err != nil {
			return out, err
		}
	}
	return out, nil
}

// sendRound sends entries without an order between them.
func (qs *Queues) sendRound(ctx context.Context, queues Outgoing, out *SendResult) error {
	var all []Batch
	for _, q := range queues {
		for _, batch := range Batches(q.Entries) {
			all = append(all, Batch{q.URL, batch})
		}
	}
	if len(all) != 1 {
		return qs.sendBatches(ctx, all, out)
	}
	accepted, err := qs.SendAccepted(ctx, all[0].URL, all[0].Entries) // a turn usually sends one batch
	return out.add(all[0].URL, accepted, err)
}

// sendBatches sends batches concurrently.
func (qs *Queues) sendBatches(ctx context.Context, all []Batch, out *SendResult) error {
	var mu sync.Mutex
	return awscall.ForEach(len(all), func(i int) error {
		accepted, err := qs.SendAccepted(ctx, all[i].URL, all[i].Entries)
		mu.Lock()
		defer mu.Unlock()
		return out.add(all[i].URL, accepted, err)
	})
}

// Batch is a batch for a queue, or the accepted part of one.
type Batch struct {
	URL     string
	Entries []Entry
}

// Outgoing holds the entries to send, by queue. It is a slice because a turn sends to few queues.
type Outgoing []Batch

// Add adds an entry for a queue. following is the number of entries that may follow.
func (o *Outgoing) Add(url string, e Entry, following int) {
	for i := range *o {
		if q := &(*o)[i]; q.URL == url {
			q.Entries = append(q.Entries, e)
			return
		}
	}
	*o = append(*o, Batch{url, append(make([]Entry, 0, 1+following), e)})
}

// RoundsOf splits entries into rounds. A round contains only entries of a message group that one batch may contain: one
// entry, or several entries with InOneBatch. There is usually one round.
func RoundsOf(queues Outgoing) []Outgoing {
	rounds := []Outgoing{{}}
	for _, q := range queues {
		if len(q.Entries) < 2 || q.Entries[0].Group == "" {
			rounds[0] = append(rounds[0], q)
			continue
		}
		sent := map[string]share{}
		for i := range q.Entries {
			e := &q.Entries[i]
			s := sent[e.Group].with(e)
			sent[e.Group] = s
			for s.round >= len(rounds) {
				rounds = append(rounds, nil)
			}
			rounds[s.round].Add(q.URL, *e, 0)
		}
	}
	for _, round := range rounds {
		for _, q := range round {
			if len(q.Entries) > 1 && q.Entries[0].InOneBatch { // entries of one group become adjacent
				slices.SortStableFunc(q.Entries, func(a, b Entry) int { return strings.Compare(a.Group, b.Group) })
			}
		}
	}
	return rounds
}

// share is the part of a message group in a round.
type share struct{ round, entries, bytes int }

// with returns the share with the next entry added.
func (s share) with(e *Entry) share {
	most := 1
	if e.InOneBatch {
		most = BatchLimit
	}
	if s.entries == most || s.bytes+len(e.Body) > MessageLimit {
		s = share{round: s.round + 1}
	}
	return share{s.round, s.entries + 1, s.bytes + len(e.Body)}
}

// SendResult is the result of sending batches: the accepted entries, and the permanently rejected entries.
type SendResult struct {
	Accepted []Batch
	Rejected []RejectedEntry
}

// add records the result of a batch. It returns the batch's error, unless the error only means that some entries are
// always rejected.
func (s *SendResult) add(url string, accepted []Entry, err error) error {
	s.Accepted = append(s.Accepted, Batch{url, accepted})
	partial, ok := errors.AsType[*PartialError](err)
	if !ok || len(partial.refused) == 0 {
		return err
	}
	s.Rejected = append(s.Rejected, partial.refused...)
	return nil
}

// without returns a batch without the remaining and the rejected entries.
func without(batch, left []Entry, refused []RejectedEntry) []Entry {
	if len(left)+len(refused) == 0 {
		return batch
	}
	return slices.DeleteFunc(slices.Clone(batch), func(e Entry) bool {
		return slices.ContainsFunc(left, func(l Entry) bool { return l.ID == e.ID }) ||
			slices.ContainsFunc(refused, func(r RejectedEntry) bool { return r.ID == e.ID })
	})
}

// SendInOrder sends to a FIFO queue, one batch after the other.
func (qs *Queues) SendInOrder(ctx context.Context, url string, entries []Entry) error {
	for _, batch := range Batches(entries) {
		if err := qs.SendBatch(ctx, url, batch); err != nil {
			return err
		}
	}
	return nil
}

// Batches splits entries into batches that fit a request. Adjacent entries of one group with InOneBatch stay together.
func Batches(entries []Entry) [][]Entry {
	var cut [][]Entry
	for from, size := 0, 0; from < len(entries); size = 0 {
		to := from
		for to < len(entries) {
			n, bytes := nextGroup(entries[to:])
			if to > from && (to-from+n > BatchLimit || size+bytes > MessageLimit) {
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

// nextGroup returns the number of entries that must be in the same batch as the first one, and their size in bytes.
func nextGroup(entries []Entry) (n, bytes int) {
	n, bytes = 1, len(entries[0].Body)
	for entries[0].InOneBatch && n < min(BatchLimit, len(entries)) && entries[n].Group == entries[0].Group &&
		bytes+len(entries[n].Body) <= MessageLimit {
		bytes += len(entries[n].Body)
		n++
	}
	return n, bytes
}

// SendBatch sends one batch, and resends the entries that SQS may accept later. If entries remain, it returns a
// PartialError with the entries whose content SQS rejected.
func (qs *Queues) SendBatch(ctx context.Context, url string, batch []Entry) error {
	_, err := qs.SendAccepted(ctx, url, batch)
	return err
}

// SendAccepted is like SendBatch, and also returns the accepted entries.
func (qs *Queues) SendAccepted(ctx context.Context, url string, batch []Entry) (accepted []Entry, err error) {
	left := batch
	var refused []RejectedEntry
	err = awscall.Do(ctx, "SQS.SendMessageBatch", "", func() error {
		out, err := qs.api.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: sendEntries(left)})
		if err != nil {
			return err
		}

		faults, again := splitFailures(out.Failed)
		refused = append(refused, rejectedEntries(left, faults)...)
		left = remaining(left, again, faults)
		switch {
		case len(again) > 0:
			return temporaryError(url, again)
		case len(refused) > 0:
			return &PartialError{
				url:     url,
				failed:  len(refused),
				code:    refused[0].Code,
				message: refused[0].Message,
				Fault:   true,
				refused: refused,
			}
		default:
			return nil
		}
	})
	return without(batch, left, refused), err
}

// RejectedEntry is an entry that SQS always rejects, and the error.
type RejectedEntry struct {
	ID            int64
	Code, Message string
}

// permanentErrors holds the documented errors about an entry's content: invalid characters, a size or a parameter out
// of range. All other errors are temporary, independent of SenderFault: a missing permission, an unusable key,
// throttling, or a queue that is being replaced. An activity must not fail because of them, because an operator can
// remove the cause (R9).
var permanentErrors = map[string]bool{
	"InvalidMessageContents": true,
	"InvalidParameterValue":  true,
	"InvalidAttributeValue":  true,
}

// isPermanent reports whether SQS always rejects an entry that failed with f.
func isPermanent(f *types.BatchResultErrorEntry) bool {
	code := aws.ToString(f.Code)
	// some codes start with the name of the service
	return f.SenderFault && permanentErrors[code[strings.LastIndexAny(code, ".#")+1:]]
}

// splitFailures separates failures about the content of entries from others.
func splitFailures(failed []types.BatchResultErrorEntry) (faults, again []types.BatchResultErrorEntry) {
	for i := range failed {
		if isPermanent(&failed[i]) {
			faults = append(faults, failed[i])
		} else {
			again = append(again, failed[i])
		}
	}
	return faults, again
}

func rejectedEntries(batch []Entry, faults []types.BatchResultErrorEntry) (refused []RejectedEntry) {
	for _, f := range faults {
		if i, err := strconv.Atoi(aws.ToString(f.Id)); err == nil && i >= 0 && i < len(batch) {
			refused = append(
				refused, RejectedEntry{ID: batch[i].ID, Code: aws.ToString(f.Code), Message: aws.ToString(f.Message)},
			)
		}
	}
	return refused
}

func sendEntries(batch []Entry) []types.SendMessageBatchRequestEntry {
	entries := make([]types.SendMessageBatchRequestEntry, len(batch))
	for i := range batch {
		e := &entries[i]
		e.Id = aws.String(strconv.Itoa(i))
		e.MessageBody = &batch[i].Body
		e.DelaySeconds = batch[i].Delay
		if batch[i].Group != "" {
			e.MessageGroupId = &batch[i].Group
			e.MessageDeduplicationId = &batch[i].Dedup
		}
		if batch[i].Fair != "" {
			e.MessageGroupId = &batch[i].Fair
		}
		if batch[i].reason != "" {
			e.MessageAttributes = map[string]types.MessageAttributeValue{
				AttrReason: {DataType: aws.String(attrReasonType), StringValue: &batch[i].reason},
			}
		}
	}
	return entries
}

// remaining returns the entries to send again. For a FIFO queue, it returns all entries since the first failure, except
// rejected ones, to preserve the order. SQS drops duplicates of the entries that it has accepted.
func remaining(batch []Entry, failed, refused []types.BatchResultErrorEntry) (rest []Entry) {
	if len(failed) == 0 {
		return nil
	}
	again, never := indices(failed), indices(refused)
	fifo := batch[0].Group != ""
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

// PartialError means that some entries of a batch were not accepted.
type PartialError struct {
	url, code, message string
	failed             int
	Fault              bool // the content is invalid, so SQS always rejects the entry
	refused            []RejectedEntry
}

// Error implements error.
func (e *PartialError) Error() string {
	return fmt.Sprintf("%d messages for %s were rejected: %s %s", e.failed, e.url, e.code, e.message)
}

// RetryableError reports to the SDK's retryer whether the error can be retried.
func (e *PartialError) RetryableError() bool { return !e.Fault }

// temporaryError returns the error for entries that may be accepted later.
func temporaryError(url string, failed []types.BatchResultErrorEntry) *PartialError {
	return &PartialError{
		url:     url,
		failed:  len(failed),
		code:    aws.ToString(failed[0].Code),
		message: aws.ToString(failed[0].Message),
	}
}
