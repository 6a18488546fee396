package workqueue

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
	"github.com/perdure/perdure/provider/dynamo/internal/sqsqueue"
	"github.com/perdure/perdure/provider/wire"
)

// Decode decodes the records of a work queue and attaches a CancelRead to each item.
func (wq *WorkQueues) Decode(
	ctx context.Context, records []provider.Record,
) (items []provider.LockedWorkItem, unreadable []provider.Unreadable) {
	items = make([]provider.LockedWorkItem, 0, len(records))
	for _, r := range records {
		w, err := wire.DecodeWorkItem(r.Body)
		if err == nil {
			err = wq.queue.CheckHub(&w.Hub)
		}
		if err != nil {
			unreadable = append(unreadable, provider.Unreadable{Record: r, Err: err})
			continue
		}
		items = append(items, provider.LockedWorkItem{WorkItem: w, Record: r})
	}
	provider.AttachCancelReads(ctx, items, wq.cancels.ReadCancels)
	return items, unreadable
}

// Complete sends outcomes before it deletes records. In the opposite order, a crash between the two would lose the
// outcome (R14).
//
// It does not send the outcome of a record whose lock is lost, because another delivery reports that outcome. It sends
// the other outcomes.
func (wq *WorkQueues) Complete(
	ctx context.Context, queue string, done []provider.CompletedWorkItem,
) ([]provider.Record, error) {
	done, lost, lockLost := splitLost(done, wq.now())
	records := make([]provider.Record, len(done))
	for i := range done {
		records[i] = done[i].Record
	}
	if err := wq.inbox.Send(ctx, bundleOutcomes(done)...); err != nil {
		return slices.Concat(records, lost), errors.Join(err, lockLost)
	}
	if err := wq.queue.DeleteRecords(ctx, queue, recordsToDelete(done)...); err != nil {
		wq.log.WarnContext(ctx, "record deletion failed, finished records will be redelivered",
			"event", logevent.RecordDeleteFailed, "queue", queue, "error", err)
	}
	return lost, lockLost
}

// recordsToDelete returns the records of work items without KeepRecord.
func recordsToDelete(done []provider.CompletedWorkItem) (records []provider.Record) {
	for i := range done {
		if !done[i].KeepRecord {
			records = append(records, done[i].Record)
		}
	}
	return records
}

// splitLost separates the work items whose locks have expired.
func splitLost(
	done []provider.CompletedWorkItem, now time.Time,
) (own []provider.CompletedWorkItem, lost []provider.Record, err error) {
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

// maxBundleBytes limits a bundle to well under the maximum size of a message.
const maxBundleBytes = sqsqueue.MessageLimit / 2

// bundleKey identifies the outcomes that are sent as one message, if they fit.
type bundleKey struct {
	executionID string
	kind        provider.MessageKind
}

// bundleKeyOf returns the bundle of a work item with an outcome.
func bundleKeyOf(d *provider.CompletedWorkItem) bundleKey {
	of := bundleKey{d.ExecutionID, provider.MessageActivityOutcomes}
	switch {
	case d.Outcome.Pending != nil:
		of.kind = provider.MessageActivityPending
	case d.Outcome.Run != "":
		of.kind = provider.MessageActivityAttempts
	}
	return of
}

// countLeading counts the outcomes of a bundle at the front. These are usually all outcomes.
func countLeading(done []provider.CompletedWorkItem, of bundleKey) (n int) {
	for n < len(done) && done[n].Outcome != nil && bundleKeyOf(&done[n]) == of {
		n++
	}
	return n
}

// bundleOutcomes returns up to three messages for each execution. The first has its outcomes, the second has failed
// attempts that may not be the last of their activities, and the third has pending attempts.
func bundleOutcomes(done []provider.CompletedWorkItem) []provider.Message {
	var ms []provider.Message
	open := map[bundleKey]int{} // the index of its last message
	size := map[bundleKey]int{}
	small := fitOneMessage(done)
	for i := range done {
		d := &done[i]
		if d.Outcome == nil {
			continue
		}
		of := bundleKeyOf(d)
		at, ok := open[of]
		bytes := 0
		if !small {
			bytes = outcomeBytes(d.Outcome)
		}
		// no message can contain it, and it must not block the others or make the activity run forever
		if bytes > maxBundleBytes {
			d.Outcome = replaceTooLarge(d.Outcome, bytes)
			bytes = 0
		}
		if !ok || size[of]+bytes > maxBundleBytes {
			at = len(ms)
			ms = append(ms, provider.Message{
				Kind:        of.kind,
				InstanceID:  d.InstanceID,
				ExecutionID: d.ExecutionID,
				Outcomes:    make([]provider.ActivityOutcome, 0, countLeading(done[i:], of)),
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
	// maxEscapedBytes is the maximum number of bytes of an escaped byte in a message, as in \u0000.
	maxEscapedBytes = 6
	// outcomeOverhead exceeds the size of an outcome's names, numbers and times.
	outcomeOverhead = 512
)

// fitOneMessage reports whether one message can contain all of the outcomes, without encoding them to measure their
// size. It returns false if there are errors, which can be deep.
func fitOneMessage(done []provider.CompletedWorkItem) bool {
	bytes := 0
	for i := range done {
		o := done[i].Outcome
		if o == nil {
			continue
		}
		if o.Error != nil || o.Pending != nil {
			return false
		}
		bytes += outcomeOverhead + maxEscapedBytes*(len(o.Result)+len(o.Run)+len(o.Ended))
	}
	return bytes <= maxBundleBytes
}

// outcomeBytes returns the size of an outcome in a message. Escape sequences make it larger than its parts.
func outcomeBytes(o *provider.ActivityOutcome) int {
	b, err := json.Marshal(o)
	if err != nil {
		return 0 // the encoding of the message returns the error
	}
	return len(sqsqueue.SqsText(b))
}

// replaceTooLarge replaces an outcome that does not fit a message.
func replaceTooLarge(o *provider.ActivityOutcome, bytes int) *provider.ActivityOutcome {
	cut := *o
	cut.Result = nil
	cut.Error = &history.Failure{
		Type: history.TypePayloadTooLarge, NonRetryable: true,
		Message: fmt.Sprintf("outcome of activity #%d has %d bytes, more than the limit of %d for a message",
			o.ActivityID, bytes, maxBundleBytes),
	}
	return &cut
}
