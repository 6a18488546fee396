package outbox

import (
	"context"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// Resend sends the unsettled outputs of an execution, and returns their number. notes are the keys of its dispatch
// records and cursors.
func (ob *Outbox) Resend(
	ctx context.Context, o *provider.Orchestration, x provider.Origin, settled func(int64) bool, run string,
	notes []table.Item,
) (sent int, refused []provider.OutputFailure, err error) {
	for _, s := range o.Segments {
		out := provider.OutputsOf(x, s, settled)
		sent += out.Count()
	}
	if sent == 0 {
		return 0, nil, nil // true for nearly all past executions
	}

	fresh, err := ob.deleteRecords(ctx, o, notes, run)
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

// deleteRecords deletes the dispatch records and cursors of an execution, because the outputs that they list are in no
// queue any more. It keeps those of the same reconciliation, so that a reconciliation whose calls fail continues. It
// also keeps those of a later, concurrent one, because otherwise each reconciliation would send the outputs of the
// other again. fresh is true if there are none of these.
func (ob *Outbox) deleteRecords(
	ctx context.Context, o *provider.Orchestration, notes []table.Item, run string,
) (fresh bool, err error) {
	fresh = true
	for _, note := range notes {
		if run != "" && table.GetString(note, table.AttrTakenBy) >= run {
			fresh = false
			continue
		}
		if err := ob.Table.DeleteItem(ctx, o.InstanceID, table.KeyOf(note)); err != nil {
			return false, err
		}
	}
	return fresh, nil
}
