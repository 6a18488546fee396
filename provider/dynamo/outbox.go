package dynamo

import (
	"context"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
)

// dispatch sends the outputs of a committed turn. A terminal status is written after all outputs were accepted, because
// the ID may be used again only then (R9). The last steps are best effort.
func (p *Provider) dispatch(ctx context.Context, t *provider.Turn, s provider.Segment) ([]provider.OutputFailure, error) {
	u := instances.AfterTurn(t, s)
	needless := t.ObsoleteTimers()
	if u.Changed() && !u.Status.Terminal() {
		return p.alongside(ctx, t, s, u, needless)
	}

	refused, err := p.sendSegment(ctx, t, s)
	if err == nil {
		err = p.sendEnds(ctx, t.Origin(), s.Sequence, needless)
	}
	if err == nil && u.Changed() {
		err = p.publish(ctx, &u)
	}
	if err == nil {
		p.dropSchedules(ctx, t.Head.ExecutionID, needless)
	}
	return refused, err
}

// alongside sends the outputs and writes the instance concurrently, because neither depends on the other.
func (p *Provider) alongside(ctx context.Context, t *provider.Turn, s provider.Segment, u instances.Projection, needless []history.OpenItem) (refused []provider.OutputFailure, err error) {
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
	if u := instances.FromHistory(o); o.Head.Segment > 0 {
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
