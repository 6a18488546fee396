package outbox

import (
	"context"
	"fmt"
	"slices"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/inbox"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsqueue"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
	"github.com/perdure/perdure/provider/dynamo/internal/workqueue"
	"github.com/perdure/perdure/provider/outputs"
)

// SendOutputs sends work items, timers and messages to their queues.
func (ob *Outbox) SendOutputs(ctx context.Context, out *outputs.Set) ([]provider.OutputFailure, error) {
	queues, refused, err := ob.encode(ctx, out)
	if err != nil {
		return refused, err
	}
	sent, err := ob.Queue.SendAll(ctx, queues)
	return append(refused, rejectedOutputs(sent.Rejected)...), err
}

// encode encodes outputs for their queues, by URL. It separately returns outputs that no queue can accept, which it
// detects without a call.
func (ob *Outbox) encode(
	ctx context.Context, out *outputs.Set,
) (queues sqsqueue.Outgoing, refused []provider.OutputFailure, err error) {
	if refused, err = ob.WorkQueues.AddEntries(ctx, out.WorkItems, &queues); err != nil {
		return nil, refused, err
	}
	refused = append(refused, ob.addMessages(out.Messages, &queues)...)
	timers, err := ob.Timers.Encode(out.Timers)
	if err == nil && len(timers) > 0 {
		queues = append(queues, sqsqueue.Batch{URL: ob.Queue.TimersURL, Entries: timers})
	}
	return queues, refused, err
}

func rejectedOutputs(never []sqsqueue.RejectedEntry) (refused []provider.OutputFailure) {
	for _, e := range never {
		refused = append(refused, workqueue.RejectOutput(
			e.ID, "OutputRefusedError", "SQS rejected the message: %s %s", e.Code, e.Message,
		))
	}
	return refused
}

// addMessages adds messages for other instances to the entries of the inbox.
func (ob *Outbox) addMessages(ms []provider.Message, queues *sqsqueue.Outgoing) (refused []provider.OutputFailure) {
	for i := range ms {
		m := ms[i]
		id := m.SourceEventID
		m.Hub = ob.Queue.Hub
		own := m.Kind == provider.MessageStart || m.Kind == provider.MessageEventSent ||
			m.Kind == provider.MessageUpdateSent
		if own {
			m.SourceEventID = 0
		}
		e, err := inbox.Encode(&m)
		// the waiting caller must receive an outcome anyway
		if err != nil && (m.Kind == provider.MessageChildOutcome || m.Kind == provider.MessageUpdateAnswered) {
			m.Result = nil
			m.Error = &history.Failure{Type: history.TypePayloadTooLarge, Message: err.Error(), NonRetryable: true}
			e, err = inbox.Encode(&m)
		}
		if err != nil {
			refused = append(refused, workqueue.RejectOutput(id, history.TypePayloadTooLarge, "%v", err))
			continue
		}

		e.ID = id
		e.IsEvent = own // other messages refer to events of other executions, or to none
		queues.Add(ob.Queue.InboxURL, e, len(ms)-1-i)
	}
	return refused
}

// PutWorkItems sends work items with their remaining delay.
func (ob *Outbox) PutWorkItems(ctx context.Context, items ...provider.WorkItem) error {
	refused, err := ob.SendOutputs(ctx, &outputs.Set{WorkItems: slices.Clone(items)})
	if err == nil && len(refused) > 0 {
		err = fmt.Errorf("dynamo: activity #%d: %s", refused[0].EventID, refused[0].Failure.Message)
	}
	return err
}

// setReconcileIDs gives work items with exclusive keys the deduplication IDs of a reconciliation. The queues may have
// been purged recently, and SQS still drops repetitions of purged messages.
func (ob *Outbox) setReconcileIDs(queues sqsqueue.Outgoing, run string) {
	for i := range queues {
		if q := &queues[i]; q.URL != ob.Queue.InboxURL {
			for j := range q.Entries {
				if e := &q.Entries[j]; e.Dedup != "" {
					e.Dedup = table.Digest(e.Dedup, run)
				}
			}
		}
	}
}
