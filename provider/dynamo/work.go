package dynamo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// DecodeWorkItems reads the records of a work queue, and gives each item a read of its cancel record.
func (p *Provider) DecodeWorkItems(ctx context.Context, records []provider.Record) (items []provider.LockedWorkItem, unreadable []provider.Unreadable) {
	items = make([]provider.LockedWorkItem, 0, len(records))
	for _, r := range records {
		w, err := provider.DecodeWorkItem(r.Body)
		if err == nil {
			err = p.ofHub(&w.Hub)
		}
		if err != nil {
			unreadable = append(unreadable, provider.Unreadable{Record: r, Err: err})
			continue
		}
		items = append(items, provider.LockedWorkItem{WorkItem: w, Record: r})
	}
	provider.AttachCancelReads(ctx, items, p.ReadCancels)
	return items, unreadable
}

// AckWorkItems sends outcomes first and deletes records after: in the other order a crash between the two would lose
// the outcome (R14).
//
// The outcome of a record that is no longer held is not sent, because another delivery reports it; the others are sent
// without it.
func (p *Provider) AckWorkItems(ctx context.Context, queue string, done []provider.CompletedWorkItem) ([]provider.Record, error) {
	done, lost, lockLost := ownOutcomes(done, p.now())
	records := make([]provider.Record, len(done))
	for i := range done {
		records[i] = done[i].Record
	}
	if err := p.EnqueueForOrchestrator(ctx, bundle(done)...); err != nil {
		return slices.Concat(records, lost), errors.Join(err, lockLost)
	}
	if err := p.DeleteRecords(ctx, queue, ownDeletes(done)...); err != nil {
		p.log.WarnContext(ctx, "record deletion failed, finished records will be redelivered",
			"event", logevent.RecordDeleteFailed, "queue", queue, "error", err)
	}
	return lost, lockLost
}

// ownDeletes are the records of work items that are not left to whoever has handed them over.
func ownDeletes(done []provider.CompletedWorkItem) (records []provider.Record) {
	for i := range done {
		if !done[i].KeepRecord {
			records = append(records, done[i].Record)
		}
	}
	return records
}

// ownOutcomes separates the work items whose locks are over.
func ownOutcomes(done []provider.CompletedWorkItem, now time.Time) (own []provider.CompletedWorkItem, lost []provider.Record, err error) {
	if !slices.ContainsFunc(done, func(d provider.CompletedWorkItem) bool { return !d.Record.Held(now) }) {
		return done, nil, nil
	}
	var errs []error
	for i := range done {
		d := &done[i]
		if d.Record.Held(now) {
			own = append(own, *d)
			continue
		}
		lost = append(lost, d.Record)
		errs = append(errs,
			fmt.Errorf("dynamo: instance %q: activity #%d: outcome not sent: %w", d.InstanceID, d.ActivityID,
				provider.ErrLockLost))
	}
	return own, lost, errors.Join(errs...)
}

// bundleBytes keeps a bundle well under the limit of a message.
const bundleBytes = messageLimit / 2

// bundleKey identifies the outcomes that are sent as one message, as far as they fit.
type bundleKey struct {
	executionID string
	kind        provider.MessageKind
}

// bundleOf is the bundle of a work item that has an outcome.
func bundleOf(d *provider.CompletedWorkItem) bundleKey {
	of := bundleKey{d.ExecutionID, provider.MessageActivityOutcomes}
	switch {
	case d.Outcome.Pending != nil:
		of.kind = provider.MessageActivityPending
	case d.Outcome.Run != "":
		of.kind = provider.MessageActivityAttempts
	}
	return of
}

// leading counts the outcomes of a bundle that come before any other: mostly those are all.
func leading(done []provider.CompletedWorkItem, of bundleKey) (n int) {
	for n < len(done) && done[n].Outcome != nil && bundleOf(&done[n]) == of {
		n++
	}
	return n
}

// bundle makes one message of all outcomes of an execution, one of the failed attempts that may not be their
// activities' last, and one of the attempts that are completed from outside.
func bundle(done []provider.CompletedWorkItem) []provider.Message {
	var ms []provider.Message
	open := map[bundleKey]int{} // the index of its last message
	size := map[bundleKey]int{}
	small := areSmall(done)
	for i := range done {
		d := &done[i]
		if d.Outcome == nil {
			continue
		}
		of := bundleOf(d)
		at, ok := open[of]
		bytes := 0
		if !small {
			bytes = outcomeBytes(d.Outcome)
		}
		if bytes > bundleBytes { // no message can hold it: the others must not be held up, nor the activity run for ever
			d.Outcome = tooLargeToSend(d.Outcome, bytes)
			bytes = 0
		}
		if !ok || size[of]+bytes > bundleBytes {
			at = len(ms)
			ms = append(ms, provider.Message{
				Kind: of.kind, InstanceID: d.InstanceID, ExecutionID: d.ExecutionID, Outcomes: make([]provider.ActivityOutcome, 0, leading(done[i:], of)),
			})
			open[of] = at
			size[of] = 0
		}

		size[of] += bytes
		ms[at].Outcomes = append(ms[at].Outcomes, *d.Outcome)
		ms[at].Segment = max(ms[at].Segment, d.Segment)
	}
	return ms
}

const (
	// mostEscaped is how many bytes one byte of a text or a document takes in a message at the most, as \u0000.
	mostEscaped = 6
	// plainOutcome is more than the names, the numbers and the times of an outcome take.
	plainOutcome = 512
)

// areSmall reports whether one message could hold all of the outcomes, without measuring them, which would encode each once more. It does not say so of
// errors, which may be deep.
func areSmall(done []provider.CompletedWorkItem) bool {
	bytes := 0
	for i := range done {
		o := done[i].Outcome
		if o == nil {
			continue
		}
		if o.Error != nil || o.Pending != nil {
			return false
		}
		bytes += plainOutcome + mostEscaped*(len(o.Result)+len(o.Run)+len(o.Ended))
	}
	return bytes <= bundleBytes
}

// outcomeBytes returns the size of an outcome in a message: escapes make it larger than its parts.
func outcomeBytes(o *provider.ActivityOutcome) int {
	b, err := json.Marshal(o)
	if err != nil {
		return 0 // encoding the message returns the error
	}
	return len(sqsText(b))
}

// tooLargeToSend replaces an outcome that does not fit a message.
func tooLargeToSend(o *provider.ActivityOutcome, bytes int) *provider.ActivityOutcome {
	cut := *o
	cut.Result = nil
	cut.Error = &history.Failure{
		Type: history.TypePayloadTooLarge, NonRetryable: true,
		Message: fmt.Sprintf("outcome of activity #%d has %d bytes, more than the limit of %d for a message",
			o.ActivityID, bytes, bundleBytes),
	}
	return &cut
}
