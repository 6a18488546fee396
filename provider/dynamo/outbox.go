package dynamo

import (
	"context"
	"errors"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// dispatch sends what a committed turn caused. The status of a turn that ends the instance is written when everything was
// accepted: only then may the id be used again (R9). What is left then is at best.
func (p *Provider) dispatch(ctx context.Context, t *provider.Turn, s provider.Segment) ([]provider.OutputFailure, error) {
	u := projectionOf(t, s)
	if u.changed() && !u.status.Terminal() {
		return p.alongside(ctx, t, s, u)
	}
	refused, err := p.sendSegment(ctx, t.Origin(), s)
	if err == nil {
		err = p.tellEnds(ctx, t.Origin(), s.Sequence, t.CancelledTimers)
	}
	if err == nil && u.changed() {
		err = p.publish(ctx, &u)
	}
	if err == nil {
		p.dropSchedules(ctx, t.Head.ExecutionID, t.CancelledTimers)
	}
	return refused, err
}

// alongside sends while the instance is written: neither waits for the other.
func (p *Provider) alongside(ctx context.Context, t *provider.Turn, s provider.Segment, u projection) (refused []provider.OutputFailure, err error) {
	err = together(
		func() error { return p.publish(ctx, &u) },
		func() (err error) { refused, err = p.sendSegment(ctx, t.Origin(), s); return err },
	)
	if err == nil {
		err = p.tellEnds(ctx, t.Origin(), s.Sequence, t.CancelledTimers)
	}
	if err == nil {
		p.dropSchedules(ctx, t.Head.ExecutionID, t.CancelledTimers)
	}
	return refused, err
}

// projectionOf is what a turn changes of the instance: all that history says of it, so that what an earlier turn could not write is
// there with this. One that continues as new has done so in its commit.
func projectionOf(t *provider.Turn, s provider.Segment) projection {
	status, changed := t.Status()
	custom := provider.CustomStatusOf(s.Events)
	if t.Next != nil || !changed && custom == nil {
		return projection{}
	}
	if custom == nil {
		custom = t.CustomStatus
	}
	return projection{
		instanceID: t.InstanceID, executionID: t.Head.ExecutionID, sequence: s.Sequence, event: s.Events[0].ID, status: status,
		version: versionOf(s), customStatus: custom, watermark: s.Watermark, blocked: blockedBy(s), retention: t.Retention,
	}
}

// RedispatchOrchestration sends again what is unsettled from the segment that consumed the message at from, up to the head,
// across continue-as-new (R4).
func (p *Provider) RedispatchOrchestration(ctx context.Context, o *provider.Orchestration, from provider.Position) ([]provider.OutputFailure, error) {
	out := outbox{p: p, again: true}
	if err := out.sendUnsettled(ctx, o, from); err != nil {
		return nil, err
	}
	executions := []*provider.Orchestration{o}
	for x := o; x.Previous != "" && x.Segments[0].Watermark.Covers(from); {
		before, err := p.readExecution(ctx, x.InstanceID, x.Previous, provider.Strong)
		if errors.Is(err, provider.ErrNotFound) {
			break // erased (R21): it ended before any message that can still come was sent
		}
		if err != nil {
			return nil, err
		}
		x = before
		if err := out.sendUnsettled(ctx, x, from); err != nil {
			return nil, err
		}
		executions = append(executions, x)
	}
	if err := p.tellEnds(ctx, o.Origin(), o.Head.Segment, cancelledTimers(o.Segments, since(o, from))); err != nil {
		return out.refused, err
	}
	if u := endOf(o); o.Head.Segment > 0 { // else the instance was written together with its h#0
		if err := p.publish(ctx, &u); err != nil {
			return out.refused, err
		}
	}
	for _, x := range executions {
		p.dropSchedules(ctx, x.Head.ExecutionID, cancelledTimers(x.Segments, since(x, from)))
	}
	return out.refused, nil
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

// endOf is what an execution's whole history says of its instance.
func endOf(o *provider.Orchestration) projection {
	last := o.Segments[len(o.Segments)-1]
	u := projection{
		instanceID: o.InstanceID, executionID: o.Head.ExecutionID, sequence: last.Sequence, event: last.Events[0].ID,
		status: provider.StatusRunning, watermark: last.Watermark, retention: o.Retention,
	}
	for _, s := range o.Segments {
		if provider.IsCancelling(s.Events) {
			u.status = provider.StatusCancelling
		}
		if u.version == "" {
			u.version = versionOf(s)
		}
		if custom := provider.CustomStatusOf(s.Events); custom != nil {
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
