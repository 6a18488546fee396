package workqueue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsqueue"
	"github.com/perdure/perdure/provider/outcomes"
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

func bundleOutcomes(done []provider.CompletedWorkItem) []provider.Message {
	size := outcomeBytes
	if fitOneMessage(done) {
		size = func(*provider.ActivityOutcome) int { return 0 }
	}
	return outcomes.Bundle(done, maxBundleBytes, size)
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
	return len(sqsqueue.SqsText(string(b)))
}
