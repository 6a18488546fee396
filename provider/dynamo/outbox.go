package dynamo

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// dispatch sends what a committed turn caused. The status of a turn that ends the instance is written last, when everything
// else was accepted: only then may the id be used again (R9).
func (p *Provider) dispatch(ctx context.Context, t *provider.Turn, s provider.Segment) ([]provider.OutputFailure, error) {
	out := provider.OutputsOf(t.Origin(), s, nil)
	u := projectionOf(t, s)
	if u.changed() && !u.status.Terminal() && !out.Empty() && len(t.CancelledTimers) == 0 {
		return p.alongside(ctx, u, &out)
	}
	refused, err := p.sendOutputs(ctx, &out)
	if err == nil {
		err = p.deleteSchedules(ctx, t.Head.ExecutionID, t.CancelledTimers)
	}
	if err != nil || !u.changed() {
		return refused, err
	}
	return refused, p.project(ctx, u)
}

// projectionOf is what a turn changes of the instance. One that continues as new has done so in its commit.
func projectionOf(t *provider.Turn, s provider.Segment) projection {
	if t.Next != nil {
		return projection{}
	}
	u := projection{
		instanceID: t.InstanceID, executionID: t.Head.ExecutionID, sequence: s.Sequence,
		version: versionOf(s), customStatus: customStatusOf(s), watermark: s.Watermark,
	}
	if status, changed := t.Status(); changed {
		u.status = status
	}
	if u.status == provider.StatusBlocked {
		u.blocked = blockedBy(s)
	}
	return u
}

// alongside sends while the instance is written: neither waits for the other.
func (p *Provider) alongside(ctx context.Context, u projection, out *provider.Outputs) (refused []provider.OutputFailure, err error) {
	err = together(
		func() error { return p.project(ctx, u) },
		func() (err error) { refused, err = p.sendOutputs(ctx, out); return err },
	)
	return refused, err
}

// RedispatchOrchestration sends again what is unsettled from the segment that consumed the message at from, up to the head,
// across continue-as-new (R4).
func (p *Provider) RedispatchOrchestration(ctx context.Context, o *provider.Orchestration, from provider.Position) ([]provider.OutputFailure, error) {
	out := unsettled(o, from)
	executions := []*provider.Orchestration{o}
	for x := o; x.Previous != "" && x.Segments[0].Watermark.Covers(from); {
		var err error
		if x, err = p.readExecution(ctx, x.InstanceID, x.Previous, provider.Strong); err != nil {
			return nil, err
		}
		out.Add(unsettled(x, from))
		executions = append(executions, x)
	}
	refused, err := p.sendOutputs(ctx, &out)
	for _, x := range executions {
		if err == nil {
			err = p.deleteSchedules(ctx, x.Head.ExecutionID, cancelledTimers(x.Segments, since(x, from)))
		}
	}
	if err != nil || o.Head.Segment == 0 { // the instance was written together with its h#0
		return refused, err
	}
	return refused, p.project(ctx, endOf(o))
}

// since is the index of the first segment that has consumed the message at from; there may be none.
func since(o *provider.Orchestration, from provider.Position) int {
	for i, s := range o.Segments {
		if s.Watermark.Covers(from) {
			return i
		}
	}
	return len(o.Segments)
}

// cancelledTimers are those that the segments of a history have cancelled, from one on.
func cancelledTimers(segments []provider.Segment, from int) (all []provider.TimerSpan) {
	open := provider.TimerSpans{}
	for i := range segments {
		if i >= from {
			all = append(all, open.Cancelled(segments[i].Events)...)
		}
		open.Apply(segments[i].Events)
	}
	return all
}

// unsettled is what an execution caused since it consumed the message at from, and still waits for.
func unsettled(o *provider.Orchestration, from provider.Position) (out provider.Outputs) {
	settled := provider.Settled(o.Segments)
	for _, s := range o.Segments[since(o, from):] {
		out.Add(provider.OutputsOf(o.Origin(), s, func(id int64) bool { return settled[id] }))
	}
	return out
}

// endOf is what an execution's whole history says of its instance.
func endOf(o *provider.Orchestration) projection {
	last := o.Segments[len(o.Segments)-1]
	u := projection{
		instanceID: o.InstanceID, executionID: o.Head.ExecutionID, sequence: last.Sequence, status: provider.StatusRunning, watermark: last.Watermark,
	}
	for _, s := range o.Segments {
		if provider.IsCancelling(s.Events) {
			u.status = provider.StatusCancelling
		}
		if u.version == "" {
			u.version = versionOf(s)
		}
		if custom := customStatusOf(s); custom != nil {
			u.customStatus = custom
		}
	}
	if status, ends := provider.StatusAfter(o.Last().Kind); ends {
		u.status = status
	}
	if u.blocked = blockedBy(last); u.blocked != nil {
		u.status = provider.StatusBlocked
	}
	return u
}

// blockedBy is the event that a blocked instance's history ends with, or nil.
func blockedBy(s provider.Segment) *history.Event {
	if last := &s.Events[len(s.Events)-1]; last.Kind == history.InputsParked {
		return last
	}
	return nil
}

// versionOf is the version a turn ran as; the first one binds the instance.
func versionOf(s provider.Segment) string {
	for i := range s.Events {
		if s.Events[i].Kind == history.TurnStarted {
			return s.Events[i].Version
		}
	}
	return ""
}

// customStatusOf is the last custom status that a segment sets, or nil.
func customStatusOf(s provider.Segment) history.Payload {
	var last history.Payload
	for i := range s.Events {
		if s.Events[i].Kind == history.CustomStatusSet {
			last = s.Events[i].CustomStatus
		}
	}
	return last
}

// sendOutputs sends work items to their queues, timers to theirs, and messages to the inbox.
func (p *Provider) sendOutputs(ctx context.Context, out *provider.Outputs) ([]provider.OutputFailure, error) {
	queues := map[string][]entry{}
	refused := p.workEntries(out.WorkItems, queues)
	refused = append(refused, p.messageEntries(out.Messages, queues)...)
	timers, err := p.timerEntries(out.Timers)
	if err != nil {
		return refused, err
	}
	if len(timers) > 0 {
		queues[p.hub.TimersURL] = timers
	}
	never, err := p.sendAll(ctx, queues)
	for _, e := range never {
		refused = append(refused, refuse(e.id, "OutputRefusedError", "SQS does not take the message: %s %s", e.code, e.message))
	}
	return refused, err
}

// workEntries puts work items to those of their queues.
func (p *Provider) workEntries(items []provider.WorkItem, queues map[string][]entry) (refused []provider.OutputFailure) {
	for i := range items {
		w := &items[i]
		url, known := p.hub.WorkQueues[w.Queue]
		if !known {
			refused = append(refused, refuse(w.ActivityID, "UnknownQueueError", "activity %q is for the work queue %q, which task hub %q does not have", w.Name, w.Queue, p.hub.Name))
			continue
		}
		e, err := newEntry(w, w.ActivityID, mostOf(w.PickedUp))
		if w.NotBefore != nil {
			e.delay = p.delayUntil(*w.NotBefore)
		}
		if err != nil {
			refused = append(refused, refuse(w.ActivityID, history.TypePayloadTooLarge, "activity %q: %v", w.Name, err))
			continue
		}
		queues[url] = append(queues[url], e)
	}
	return refused
}

// messageEntries puts messages for other instances to those of the inbox.
func (p *Provider) messageEntries(ms []provider.Message, queues map[string][]entry) (refused []provider.OutputFailure) {
	for i := range ms {
		m := ms[i]
		id := m.SourceEventID
		if m.Kind == provider.MessageStart {
			m.SourceEventID = 0
		}
		e, err := inboxEntry(&m)
		if err != nil && m.Kind == provider.MessageChildOutcome { // the parent must hear of it all the same
			m.Result, m.Error = nil, &history.Failure{Type: history.TypePayloadTooLarge, Message: err.Error(), NonRetryable: true}
			e, err = inboxEntry(&m)
		}
		if err != nil {
			refused = append(refused, refuse(id, history.TypePayloadTooLarge, "%v", err))
			continue
		}
		e.id = id
		queues[p.hub.InboxURL] = append(queues[p.hub.InboxURL], e)
	}
	return refused
}

func refuse(id int64, errorType, format string, args ...any) provider.OutputFailure {
	return provider.OutputFailure{EventID: id, Failure: history.Failure{Type: errorType, Message: fmt.Sprintf(format, args...), NonRetryable: true}}
}

// PutWorkItems sends work items with the delay they have left.
func (p *Provider) PutWorkItems(ctx context.Context, items ...provider.WorkItem) error {
	refused, err := p.sendOutputs(ctx, &provider.Outputs{WorkItems: items})
	if err == nil && len(refused) > 0 {
		err = fmt.Errorf("dynamo: activity #%d: %s", refused[0].EventID, refused[0].Failure.Message)
	}
	return err
}

// newEntry encodes a message's body, of so many bytes at the most.
func newEntry(v any, id int64, most int) (entry, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return entry{}, fmt.Errorf("encode: %w", err)
	}
	body := sqsText(b)
	if len(body) > most {
		return entry{}, fmt.Errorf("%d bytes are more than the %d that a message may have", len(body), most)
	}
	return entry{id: id, body: body}, nil
}
