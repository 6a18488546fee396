package memhub

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/outputs"
)

// RedispatchOrchestration implements provider.Orchestrations.
func (st *turns) RedispatchOrchestration(
	ctx context.Context, o *provider.Orchestration, since provider.RedispatchFrom,
) (refused []provider.OutputFailure, err error) {
	return callFor(ctx, st.base, func() ([]provider.OutputFailure, error) {
		head := st.histories.byID[o.Head.ExecutionID]
		if head == nil || head.erased {
			return nil, fmt.Errorf("fake: instance %q: execution %s: %w", o.InstanceID, o.Head.ExecutionID,
				provider.ErrNotFound)
		}
		from, found := since.Position, since.HeadAt.IsZero()
		for x := o; ; {
			if !found {
				from, found = watermarkAt(x, since.HeadAt)
			}
			first := firstSince(x, from)
			refused = append(refused, st.sendUnsettled(x, first)...)
			if x == o {
				st.outbox.sendEnds(outputs.HistoryOrigin(o), o.Head.Segment, obsoleteTimers(o, first))
			}
			previous := st.histories.byID[x.Previous]
			if previous == nil || previous.erased || found && !x.Segments[0].Watermark.Covers(from) {
				break
			}
			x = previous.orchestration(provider.Strong)
		}
		if s := o.State(0); o.Head.Segment > 0 {
			st.writeStatus(head, o.Head.Segment, &s.Summary)
		}
		return refused, nil
	})
}

// watermarkAt returns the watermark of an execution at a time. found is false if it had not started.
func watermarkAt(x *provider.Orchestration, at time.Time) (watermark provider.Position, found bool) {
	for _, s := range slices.Backward(x.Segments) {
		if !s.Events[0].Time.After(at) {
			return s.Watermark, true
		}
	}
	return provider.Position{}, false
}

// firstSince returns the index of the first segment that consumed the message at from.
func firstSince(x *provider.Orchestration, from provider.Position) int {
	if from == (provider.Position{}) {
		return 0
	}
	for i := range x.Segments {
		if x.Segments[i].Watermark.Covers(from) {
			return i
		}
	}
	return len(x.Segments)
}

func obsoleteTimers(o *provider.Orchestration, first int) (all []history.OpenItem) {
	state := history.NewState(history.TrackTimers)
	for i := range o.Segments {
		if i >= first {
			all = append(all, state.ObsoleteTimers(o.Segments[i].Events...)...)
		}
		state.Apply(o.Segments[i].Events...)
	}
	return all
}

// sendUnsettled resends the outputs of segments that history has not settled. It omits old starts and events for other
// instances, which could take effect twice, and most outputs of a copied history (R30).
func (st *turns) sendUnsettled(o *provider.Orchestration, first int) (refused []provider.OutputFailure) {
	settled := o.State(history.TrackOpen | history.TrackSettled).SettledSet()
	waits := map[int64]bool{}
	long := st.now().Add(-provider.MaxReconcileLookback)
	for i := range o.Segments {
		for j := range o.Segments[i].Events {
			e := &o.Segments[i].Events[j]
			waits[e.ID] = e.WaitsForCancellation()
			switch e.Kind {
			case history.DetachedOrchestrationScheduled, history.SubOrchestrationScheduled, history.ExternalEventSent,
				history.UpdateSent, history.UpdateCompleted, history.UpdateRejected:
				settled[e.ID] = settled[e.ID] || e.Time.Before(long)
			default:
			}
		}
	}
	copied := o.RestartedEvents()
	for i := range copied {
		switch copied[i].Kind {
		case history.DetachedOrchestrationScheduled, history.SubOrchestrationCancelRequested,
			history.ExternalEventRaised, history.InputsParked:
			settled[copied[i].ID] = true
		default:
		}
	}
	for _, s := range o.Segments[first:] {
		out := outputs.Of(outputs.HistoryOrigin(o), s, func(id int64) bool { return settled[id] })
		for i := range out.WorkItems {
			out.WorkItems[i].PossibleDuplicate = true
		}
		refused = append(refused, st.outbox.send(out)...)
	}
	for i := range refused {
		if waits[refused[i].EventID] { // an earlier dispatch may have sent it
			refused[i].Ended = history.OutcomeWorkerLost
		}
	}
	return refused
}
