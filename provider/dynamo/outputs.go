package dynamo

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// sendOutputs sends work items, timers and messages to their queues.
func (p *Provider) sendOutputs(ctx context.Context, out *provider.Outputs) ([]provider.OutputFailure, error) {
	queues, refused, err := p.entriesOf(ctx, out)
	if err != nil {
		return refused, err
	}
	sent, err := p.sendAll(ctx, queues)
	return append(refused, refusedBySQS(sent.refused)...), err
}

// entriesOf encodes outputs for their queues, by URL. It separately returns outputs that no queue can accept, which it
// finds out without a call.
func (p *Provider) entriesOf(ctx context.Context, out *provider.Outputs) (queues outgoing, refused []provider.OutputFailure, err error) {
	if refused, err = p.workEntries(ctx, out.WorkItems, &queues); err != nil {
		return nil, refused, err
	}
	refused = append(refused, p.messageEntries(out.Messages, &queues)...)
	timers, err := p.timerEntries(out.Timers)
	if err == nil && len(timers) > 0 {
		queues = append(queues, sentBatch{p.hub.TimersURL, timers})
	}
	return queues, refused, err
}

func refusedBySQS(never []refusedEntry) (refused []provider.OutputFailure) {
	for _, e := range never {
		refused = append(refused, refuse(e.id, "OutputRefusedError", "SQS rejected the message: %s %s", e.code,
			e.message))
	}
	return refused
}

// workEntries adds work items to the entries of their queues. It sets their hub and signs their tokens.
func (p *Provider) workEntries(ctx context.Context, items []provider.WorkItem, queues *outgoing) (refused []provider.OutputFailure, err error) {
	if len(items) == 0 {
		return nil, nil
	}
	tokens, err := p.signer(ctx)
	if err != nil {
		return nil, err
	}

	for i := range items {
		w := &items[i]
		w.Hub = p.hub.Name
		w.Token = tokens.Sign(w)

		url, known := p.hub.WorkQueues[w.Queue]
		if !known {
			refused = append(refused, p.unknownQueue(w))
			continue
		}
		e, err := workEntry(w)
		e.known = true
		if w.NotBefore != nil && e.group == "" { // a FIFO queue cannot delay a message
			e.delay = p.delayUntil(*w.NotBefore)
		}
		if err != nil {
			refused = append(refused, refuse(w.ActivityID, history.TypePayloadTooLarge, "activity %q: %v", w.Name, err))
			continue
		}
		queues.add(url, e, len(items)-1-i)
	}
	return refused, nil
}

// unknownQueue returns the rejection of a work item for which the hub has no queue.
func (p *Provider) unknownQueue(w *provider.WorkItem) provider.OutputFailure {
	if beside, exclusive := history.BaseQueue(w.Queue); exclusive {
		return refuse(w.ActivityID, "ExclusiveQueueError",
			"activity %q has an exclusive key, but hub %q has no FIFO queue for its work queue %q; "+
				"set Exclusive in the WorkQueueProps of %q, and deploy the stack before the code",
			w.Name, p.hub.Name, beside, beside)
	}
	return refuse(w.ActivityID, "UnknownQueueError",
		"activity %q: work queue %q does not exist in hub %q; add it to the stack, or correct OnQueue",
		w.Name, w.Queue, p.hub.Name)
}

// messageEntries adds messages for other instances to the entries of the inbox.
func (p *Provider) messageEntries(ms []provider.Message, queues *outgoing) (refused []provider.OutputFailure) {
	for i := range ms {
		m := ms[i]
		id := m.SourceEventID
		m.Hub = p.hub.Name
		own := m.Kind == provider.MessageStart || m.Kind == provider.MessageEventSent || m.Kind == provider.MessageUpdateSent
		if own {
			m.SourceEventID = 0
		}
		e, err := inboxEntry(&m)
		// the waiting caller must receive an outcome anyway
		if err != nil && (m.Kind == provider.MessageChildOutcome || m.Kind == provider.MessageUpdateAnswered) {
			m.Result = nil
			m.Error = &history.Failure{Type: history.TypePayloadTooLarge, Message: err.Error(), NonRetryable: true}
			e, err = inboxEntry(&m)
		}
		if err != nil {
			refused = append(refused, refuse(id, history.TypePayloadTooLarge, "%v", err))
			continue
		}

		e.id = id
		e.known = own // the others refer to events of other executions, or to none
		queues.add(p.hub.InboxURL, e, len(ms)-1-i)
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
func workEntry(w *provider.WorkItem) (entry, error) {
	e, err := newEntry(w, w.ActivityID, mostOf(w.Redrive))
	switch {
	case w.ExclusiveKey != "":
		e.group, e.dedup, e.loose = exclusiveGroup(w.ExclusiveKey), workID(w), true
	case w.FairnessKey != "":
		e.fair = fairGroup(w.FairnessKey)
	}
	return e, err
}

// newEntry encodes the body of a message. It returns an error if the body is larger than most bytes.
func newEntry(v any, id int64, most int) (entry, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return entry{}, fmt.Errorf("encode: %w", err)
	}
	body := sqsText(b)
	if len(body) > most {
		return entry{}, fmt.Errorf("message of %d bytes exceeds the limit of %d bytes", len(body), most)
	}
	return entry{id: id, body: body}, nil
}

// reconciled gives work items with exclusive keys the deduplication IDs of a reconciliation. The queues may just have
// been purged, and SQS still drops repetitions of purged messages.
func (p *Provider) reconciled(queues outgoing, run string) {
	for i := range queues {
		if q := &queues[i]; q.url != p.hub.InboxURL {
			for j := range q.entries {
				if e := &q.entries[j]; e.dedup != "" {
					e.dedup = table.Digest(e.dedup, run)
				}
			}
		}
	}
}
