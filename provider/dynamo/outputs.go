package dynamo

import (
	"context"
	"fmt"
	"slices"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/inbox"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsqueue"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// sendOutputs sends work items, timers and messages to their queues.
func (p *Provider) sendOutputs(ctx context.Context, out *provider.Outputs) ([]provider.OutputFailure, error) {
	queues, refused, err := p.entriesOf(ctx, out)
	if err != nil {
		return refused, err
	}
	sent, err := p.queue.SendAll(ctx, queues)
	return append(refused, refusedBySQS(sent.Rejected)...), err
}

// entriesOf encodes outputs for their queues, by URL. It separately returns outputs that no queue can accept, which it
// finds out without a call.
func (p *Provider) entriesOf(ctx context.Context, out *provider.Outputs) (queues sqsqueue.Outgoing, refused []provider.OutputFailure, err error) {
	if refused, err = p.workEntries(ctx, out.WorkItems, &queues); err != nil {
		return nil, refused, err
	}
	refused = append(refused, p.messageEntries(out.Messages, &queues)...)
	timers, err := p.timerEntries(out.Timers)
	if err == nil && len(timers) > 0 {
		queues = append(queues, sqsqueue.Batch{URL: p.queue.TimersURL, Entries: timers})
	}
	return queues, refused, err
}

func refusedBySQS(never []sqsqueue.RejectedEntry) (refused []provider.OutputFailure) {
	for _, e := range never {
		refused = append(refused, refuse(e.ID, "OutputRefusedError", "SQS rejected the message: %s %s", e.Code,
			e.Message))
	}
	return refused
}

// workEntries adds work items to the entries of their queues. It sets their hub and signs their tokens.
func (p *Provider) workEntries(ctx context.Context, items []provider.WorkItem, queues *sqsqueue.Outgoing) (refused []provider.OutputFailure, err error) {
	if len(items) == 0 {
		return nil, nil
	}
	tokens, err := p.tokens.Signer(ctx)
	if err != nil {
		return nil, err
	}

	for i := range items {
		w := &items[i]
		w.Hub = p.queue.Hub
		w.Token = tokens.Sign(w)

		url, known := p.queue.WorkQueues[w.Queue]
		if !known {
			refused = append(refused, p.unknownQueue(w))
			continue
		}
		e, err := workEntry(w)
		e.IsEvent = true
		if w.NotBefore != nil && e.Group == "" { // a FIFO queue cannot delay a message
			e.Delay = p.queue.DelayUntil(*w.NotBefore)
		}
		if err != nil {
			refused = append(refused, refuse(w.ActivityID, history.TypePayloadTooLarge, "activity %q: %v", w.Name, err))
			continue
		}
		queues.Add(url, e, len(items)-1-i)
	}
	return refused, nil
}

// unknownQueue returns the rejection of a work item for which the hub has no queue.
func (p *Provider) unknownQueue(w *provider.WorkItem) provider.OutputFailure {
	if beside, exclusive := history.BaseQueue(w.Queue); exclusive {
		return refuse(w.ActivityID, "ExclusiveQueueError",
			"activity %q has an exclusive key, but hub %q has no FIFO queue for its work queue %q; "+
				"set Exclusive in the WorkQueueProps of %q, and deploy the stack before the code",
			w.Name, p.queue.Hub, beside, beside)
	}
	return refuse(w.ActivityID, "UnknownQueueError",
		"activity %q: work queue %q does not exist in hub %q; add it to the stack, or correct OnQueue",
		w.Name, w.Queue, p.queue.Hub)
}

// messageEntries adds messages for other instances to the entries of the inbox.
func (p *Provider) messageEntries(ms []provider.Message, queues *sqsqueue.Outgoing) (refused []provider.OutputFailure) {
	for i := range ms {
		m := ms[i]
		id := m.SourceEventID
		m.Hub = p.queue.Hub
		own := m.Kind == provider.MessageStart || m.Kind == provider.MessageEventSent || m.Kind == provider.MessageUpdateSent
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
			refused = append(refused, refuse(id, history.TypePayloadTooLarge, "%v", err))
			continue
		}

		e.ID = id
		e.IsEvent = own // the others refer to events of other executions, or to none
		queues.Add(p.queue.InboxURL, e, len(ms)-1-i)
	}
	return refused
}

func refuse(id int64, errorType, format string, args ...any) provider.OutputFailure {
	return provider.OutputFailure{EventID: id, Failure: history.Failure{Type: errorType, Message: fmt.Sprintf(format, args...), NonRetryable: true}}
}

// PutWorkItems sends work items with their remaining delay.
func (p *Provider) PutWorkItems(ctx context.Context, items ...provider.WorkItem) error {
	refused, err := p.sendOutputs(ctx, &provider.Outputs{WorkItems: slices.Clone(items)})
	if err == nil && len(refused) > 0 {
		err = fmt.Errorf("dynamo: activity #%d: %s", refused[0].EventID, refused[0].Failure.Message)
	}
	return err
}

// workEntry encodes a work item.
func workEntry(w *provider.WorkItem) (sqsqueue.Entry, error) {
	e, err := sqsqueue.NewEntry(w, w.ActivityID, sqsqueue.BodyLimitFor(w.Redrive))
	switch {
	case w.ExclusiveKey != "":
		e.Group, e.Dedup, e.InOneBatch = sqsqueue.ExclusiveGroup(w.ExclusiveKey), workID(w), true
	case w.FairnessKey != "":
		e.Fair = sqsqueue.FairGroup(w.FairnessKey)
	}
	return e, err
}

// reconciled gives work items with exclusive keys the deduplication IDs of a reconciliation. The queues may just have
// been purged, and SQS still drops repetitions of purged messages.
func (p *Provider) reconciled(queues sqsqueue.Outgoing, run string) {
	for i := range queues {
		if q := &queues[i]; q.URL != p.queue.InboxURL {
			for j := range q.Entries {
				if e := &q.Entries[j]; e.Dedup != "" {
					e.Dedup = table.Digest(e.Dedup, run)
				}
			}
		}
	}
}
