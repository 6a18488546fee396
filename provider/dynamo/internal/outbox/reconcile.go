package outbox

import (
	"context"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
	"github.com/perdure/perdure/provider/outputs"
)

// Resend sends the unsettled outputs of an execution, and returns their number. records are the keys of its dispatch
// records and cursors.
func (ob *Outbox) Resend(
	ctx context.Context, o *provider.Orchestration, x outputs.Origin, settled func(int64) bool, run string,
	records []table.Item,
) (sent int, refused []provider.OutputFailure, err error) {
	for _, s := range o.Segments {
		out := outputs.Of(x, s, settled)
		sent += out.Count()
	}
	if sent == 0 {
		return 0, nil, nil // true for nearly all past executions
	}

	fresh, err := ob.deleteRecords(ctx, o, records, run)
	if err != nil {
		return sent, nil, err
	}
	b := Sender{outbox: ob, repeated: true, run: run}
	b.accepted = acceptedOutputs{
		instanceID:  o.InstanceID,
		executionID: o.Head.ExecutionID,
		head:        o.Head.Segment,
		known:       fresh,
		run:         run,
	}
	defer b.WriteRecord(ctx)
	for _, s := range o.Segments {
		if err := b.Send(ctx, x, s, settled); err != nil {
			return sent, nil, err
		}
	}
	if _, err := b.Flush(ctx); err != nil {
		return sent, nil, err
	}
	return sent, b.Rejected, nil
}

// deleteRecords deletes the dispatch records and cursors of an execution, because the queues have lost the outputs that
// they list. It does not delete records of the same reconciliation, which continues after failed calls. It also does
// not delete records of a later, concurrent reconciliation. Otherwise, each of the two would resend the outputs of the
// other. fresh is true if there are no such records.
func (ob *Outbox) deleteRecords(
	ctx context.Context, o *provider.Orchestration, records []table.Item, run string,
) (fresh bool, err error) {
	fresh = true
	for _, record := range records {
		if run != "" && table.GetString(record, table.AttrTakenBy) >= run {
			fresh = false
			continue
		}
		if err := ob.Table.DeleteItem(ctx, o.InstanceID, table.KeyOf(record)); err != nil {
			return false, err
		}
	}
	return fresh, nil
}

// SkippedOutputs holds the outputs of an execution that need not be sent.
type SkippedOutputs struct {
	IDs map[int64]bool
	// Dropped is the number of these outputs that may not have arrived: detached starts, and events for other
	// instances.
	Dropped int
	// lastCopied is the last event that the execution copied from another one. Its restart decided which outputs of
	// these events to send.
	lastCopied int64
	// OldStarts are starts of awaited children that are too old to resend, because the child could run twice.
	OldStarts []*history.Event
}

// Has reports whether the output of an event need not be sent.
func (u *SkippedOutputs) Has(id int64) bool { return u.IDs[id] }

// SkippedBefore finds the outputs that need not be sent: settled ones, and detached starts, events for other instances
// and responses to updates from before a time. It also finds starts of children from before MaxReconcileLookback.
func SkippedBefore(o *provider.Orchestration, since, now time.Time) SkippedOutputs {
	u := SkippedOutputs{IDs: o.State(history.TrackOpen | history.TrackSettled).SettledSet()}
	forgotten := now.Add(-provider.MaxReconcileLookback)
	u.skipCopied(o.RestartedEvents())
	for i := range o.Segments {
		for j := range o.Segments[i].Events {
			switch e := &o.Segments[i].Events[j]; {
			case e.ID <= u.lastCopied:
			case e.Kind == history.DetachedOrchestrationScheduled && e.Time.Before(since),
				(e.Kind == history.ExternalEventSent || e.Kind == history.UpdateSent) && e.Time.Before(since) &&
					!u.IDs[e.ID]:
				u.IDs[e.ID] = true
				u.Dropped++
			case (e.Kind == history.UpdateCompleted || e.Kind == history.UpdateRejected) && e.Time.Before(since):
				u.IDs[e.ID] = true // the execution no longer waits for the output
			case e.Kind == history.SubOrchestrationScheduled && e.Time.Before(forgotten) && !u.IDs[e.ID]:
				u.IDs[e.ID] = true
				u.OldStarts = append(u.OldStarts, e)
			}
		}
	}
	return u
}

// skipCopied omits outputs that another execution sent before its history was copied. The execution itself sends only
// outputs for which it waits, and responses to updates, whose IDs are also valid in this execution.
func (u *SkippedOutputs) skipCopied(taken []history.Event) {
	for i := range taken {
		e := &taken[i]
		u.lastCopied = e.ID
		switch e.Kind {
		case history.DetachedOrchestrationScheduled,
			history.SubOrchestrationCancelRequested,
			history.ExternalEventRaised,
			history.InputsParked:
			u.IDs[e.ID] = true
		default:
		}
	}
}
