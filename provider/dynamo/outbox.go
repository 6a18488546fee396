package dynamo

import (
	"context"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
)

// dispatch sends the outputs of a committed turn. A terminal status is written after all outputs were accepted, because
// the ID may be used again only then (R9). The last steps are best effort.
func (p *Provider) dispatch(ctx context.Context, t *provider.Turn, s provider.Segment) ([]provider.OutputFailure, error) {
	u := projectionOf(t, s)
	needless := t.ObsoleteTimers()
	if u.changed() && !u.status.Terminal() {
		return p.alongside(ctx, t, s, u, needless)
	}

	refused, err := p.sendSegment(ctx, t, s)
	if err == nil {
		err = p.sendEnds(ctx, t.Origin(), s.Sequence, needless)
	}
	if err == nil && u.changed() {
		err = p.publish(ctx, &u)
	}
	if err == nil {
		p.dropSchedules(ctx, t.Head.ExecutionID, needless)
	}
	return refused, err
}

// alongside sends the outputs and writes the instance concurrently, because neither depends on the other.
func (p *Provider) alongside(ctx context.Context, t *provider.Turn, s provider.Segment, u projection, needless []history.OpenItem) (refused []provider.OutputFailure, err error) {
	err = awscall.Parallel(
		func() error { return p.publish(ctx, &u) },
		func() (err error) { refused, err = p.sendSegment(ctx, t, s); return err },
	)
	if err == nil {
		err = p.sendEnds(ctx, t.Origin(), s.Sequence, needless)
	}
	if err == nil {
		p.dropSchedules(ctx, t.Head.ExecutionID, needless)
	}
	return refused, err
}

// projectionOf returns the changes of the instance after a turn. They include all values from the history, and thus
// values that an earlier turn could not write. The commit of a turn that continues as new has already updated the
// instance.
func projectionOf(t *provider.Turn, s provider.Segment) projection {
	if t.Next != nil {
		return projection{}
	}
	before, after := t.Summaries()
	if !after.StatusChanged(&before) && t.StatusWrite != provider.StatusWriteAlways {
		return projection{}
	}
	u := projection{
		instanceID: t.InstanceID, executionID: t.Head.ExecutionID, sequence: s.Sequence, event: s.Events[0].ID,
		watermark: s.Watermark, retention: t.Retention,
	}
	u.set(&after)
	if t.StatusWrite == provider.StatusWriteDeferred && !u.required() {
		return projection{}
	}
	return u
}

// RedispatchOrchestration sends the unsettled outputs again of the segments that since selects, up to the head, across
// continue-as-new (R4).
func (p *Provider) RedispatchOrchestration(ctx context.Context, o *provider.Orchestration, since provider.RedispatchFrom) ([]provider.OutputFailure, error) {
	refused, err := p.redispatch(ctx, o, since)
	markBegun(o.Segments, refused)
	return refused, err
}

// markBegun records in the rejections of a repeated dispatch that their activities may have started, because an earlier
// dispatch may have sent them when the hub had their queue.
func markBegun(segments []provider.Segment, refused []provider.OutputFailure) {
	if len(refused) == 0 {
		return
	}
	waits := map[int64]bool{}
	for i := range segments {
		for j := range segments[i].Events {
			if e := &segments[i].Events[j]; e.Kind == history.ActivityScheduled && e.WaitsForCancellation() {
				waits[e.ID] = true
			}
		}
	}
	for i := range refused {
		if waits[refused[i].EventID] {
			refused[i].Ended = history.OutcomeWorkerLost
		}
	}
}

func (p *Provider) redispatch(ctx context.Context, o *provider.Orchestration, since provider.RedispatchFrom) ([]provider.OutputFailure, error) {
	out := outbox{p: p, again: true}
	first := 0 // of the execution itself
	for u, err := range p.maybeUnsent(ctx, o, since) {
		if err == nil {
			err = out.sendUnsettled(ctx, u)
		}
		if err != nil {
			return nil, err
		}
		if u.Orchestration == o {
			first = u.first
		} else {
			p.dropSchedules(ctx, u.Head.ExecutionID, cancelledTimers(u.Segments, u.first))
		}
	}

	if err := p.sendEnds(ctx, o.Origin(), o.Head.Segment, cancelledTimers(o.Segments, first)); err != nil {
		return out.refused, err
	}
	// otherwise the instance was written together with its segment 0
	if u := projectionOfHistory(o); o.Head.Segment > 0 {
		if err := p.publish(ctx, &u); err != nil {
			return out.refused, err
		}
	}
	p.dropSchedules(ctx, o.Head.ExecutionID, cancelledTimers(o.Segments, first))
	return out.refused, nil
}

// cancelledTimers returns the work whose timers the segments of a history from one on have made obsolete
// (State.ObsoleteTimers).
func cancelledTimers(segments []provider.Segment, from int) (all []history.OpenItem) {
	state := history.NewState(history.TrackTimers)
	for i := range segments {
		if i >= from {
			all = append(all, state.ObsoleteTimers(segments[i].Events...)...)
		}
		state.Apply(segments[i].Events...)
	}
	return all
}

// projectionOfHistory returns the state of an instance after its whole history.
func projectionOfHistory(o *provider.Orchestration) projection {
	last := o.Segments[len(o.Segments)-1]
	u := projection{
		instanceID: o.InstanceID, executionID: o.Head.ExecutionID, sequence: last.Sequence, event: last.Events[0].ID,
		watermark: last.Watermark, retention: o.Retention,
	}
	u.set(&o.State(0).Summary)
	return u
}

// set copies the displayed state from a summary.
func (u *projection) set(s *history.Summary) {
	u.status = s.Status()
	u.customStatus = s.CustomStatus
	if u.paused = s.Paused; u.paused == nil { // a paused instance is woken in no build
		u.blocked = s.Blocked
	}
	if s.FirstTurnRun {
		u.version = s.Version
	}
}
