package dynamo

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// dispatch sends what a committed turn caused. The status of a turn that ends the instance is written last, when everything
// else was accepted: only then may the id be used again (R9).
func (p *Provider) dispatch(ctx context.Context, t *provider.Turn, s provider.Segment) ([]provider.OutputFailure, error) {
	out := provider.OutputsOf(t.InstanceID, t.Head.ExecutionID, s, nil)
	u := projectionOf(t, s)
	if u.changed() && !u.status.Terminal() && !out.Empty() {
		return p.alongside(ctx, u, &out)
	}
	refused, err := p.sendOutputs(ctx, &out)
	if err != nil || !u.changed() {
		return refused, err
	}
	return refused, p.project(ctx, u)
}

// projectionOf is what a turn changes of the instance.
func projectionOf(t *provider.Turn, s provider.Segment) projection {
	u := projection{
		instanceID: t.InstanceID, executionID: t.Head.ExecutionID, sequence: s.Sequence,
		version: versionOf(s), customStatus: customStatusOf(s), watermark: s.Watermark,
	}
	if status, changed := t.Status(); changed {
		u.status = status
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

// RedispatchOrchestration sends again what is unsettled from the segment that consumed the message at from, up to the head (R4).
func (p *Provider) RedispatchOrchestration(ctx context.Context, o *provider.Orchestration, from provider.Position) ([]provider.OutputFailure, error) {
	settled := provider.Settled(o.Segments)
	var out provider.Outputs
	first := true
	for _, s := range o.Segments {
		if s.Sequence == 0 || first && !s.Watermark.Covers(from) {
			continue
		}
		first = false
		more := provider.OutputsOf(o.InstanceID, o.Head.ExecutionID, s, func(id int64) bool { return settled[id] })
		out.WorkItems = append(out.WorkItems, more.WorkItems...)
		out.Timers = append(out.Timers, more.Timers...)
	}
	u, over := endOf(o)
	if over {
		return nil, p.project(ctx, u) // what an execution that is over had scheduled is nobody's any more
	}
	refused, err := p.sendOutputs(ctx, &out)
	if err != nil {
		return refused, err
	}
	return refused, p.project(ctx, u)
}

// endOf is what an execution's whole history says of its instance.
func endOf(o *provider.Orchestration) (u projection, over bool) {
	last := o.Segments[len(o.Segments)-1]
	u = projection{
		instanceID: o.InstanceID, executionID: o.Head.ExecutionID, sequence: last.Sequence, status: provider.StatusRunning, watermark: last.Watermark,
	}
	for _, s := range o.Segments {
		if u.version == "" {
			u.version = versionOf(s)
		}
		if custom := customStatusOf(s); custom != nil {
			u.customStatus = custom
		}
	}
	if n := len(last.Events); n > 0 {
		if status, ends := provider.StatusAfter(last.Events[n-1].Kind); ends {
			u.status, over = status, true
		}
	}
	return u, over
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

// sendOutputs sends work items to their queues and timers to theirs.
func (p *Provider) sendOutputs(ctx context.Context, out *provider.Outputs) ([]provider.OutputFailure, error) {
	var refused []provider.OutputFailure
	queues := map[string][]entry{}
	for i := range out.WorkItems {
		w := &out.WorkItems[i]
		url, known := p.hub.WorkQueues[w.Queue]
		if !known {
			refused = append(refused, refuse(w.ActivityID, "UnknownQueueError", "activity %q is for the work queue %q, which task hub %q does not have", w.Name, w.Queue, p.hub.Name))
			continue
		}
		e, err := newEntry(w, w.ActivityID)
		if w.NotBefore != nil {
			e.delay = p.delayUntil(*w.NotBefore)
		}
		if err != nil {
			refused = append(refused, refuse(w.ActivityID, history.TypePayloadTooLarge, "activity %q: %v", w.Name, err))
			continue
		}
		queues[url] = append(queues[url], e)
	}
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

func refuse(id int64, errorType, format string, args ...any) provider.OutputFailure {
	return provider.OutputFailure{EventID: id, Failure: history.Failure{Type: errorType, Message: fmt.Sprintf(format, args...), NonRetryable: true}}
}

// HoldTimers sends timers to the timers queue with the delay they have left.
func (p *Provider) HoldTimers(ctx context.Context, timers ...provider.Timer) error {
	entries, err := p.timerEntries(timers)
	if err != nil {
		return err
	}
	refused, err := p.sendAll(ctx, map[string][]entry{p.hub.TimersURL: entries})
	if len(refused) > 0 {
		return fmt.Errorf("dynamo: %d timers are not taken: %s %s", len(refused), refused[0].code, refused[0].message)
	}
	return err
}

// maxDelay is the longest an SQS message can be delayed (a quota): longer timers hop.
const maxDelay = 900 * time.Second

func (p *Provider) timerEntries(timers []provider.Timer) ([]entry, error) {
	entries := make([]entry, 0, len(timers))
	for i := range timers {
		e, err := newEntry(&timers[i], timers[i].TimerID)
		if err != nil {
			return nil, fmt.Errorf("dynamo: timer %d of instance %q: %w", timers[i].TimerID, timers[i].InstanceID, err)
		}
		e.delay = p.delayUntil(timers[i].FireAt)
		entries = append(entries, e)
	}
	return entries, nil
}

// delayUntil is rounded down: who receives the message waits out the rest of the second, so that a timer is exact and not a
// second late.
func (p *Provider) delayUntil(at time.Time) int32 {
	return int32(min(max(at.Sub(p.now()), 0), maxDelay) / time.Second)
}

// PutWorkItems sends work items with the delay they have left.
func (p *Provider) PutWorkItems(ctx context.Context, items ...provider.WorkItem) error {
	refused, err := p.sendOutputs(ctx, &provider.Outputs{WorkItems: items})
	if err == nil && len(refused) > 0 {
		err = fmt.Errorf("dynamo: activity #%d: %s", refused[0].EventID, refused[0].Failure.Message)
	}
	return err
}

// newEntry encodes a message's body.
func newEntry(v any, id int64) (entry, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return entry{}, fmt.Errorf("encode: %w", err)
	}
	body := sqsText(b)
	if len(body) > messageLimit {
		return entry{}, fmt.Errorf("%d bytes are more than a message of %d may have", len(body), messageLimit)
	}
	return entry{id: id, body: body}, nil
}
