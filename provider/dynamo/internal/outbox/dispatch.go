package outbox

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/outputs"
)

// Ack commits a turn by creating its segment, and then sends the outputs of the segment.
func (ob *Outbox) Ack(ctx context.Context, t *provider.Turn) ([]provider.OutputFailure, error) {
	if !t.LockedUntil.IsZero() && !ob.now().Before(t.LockedUntil) {
		return nil, fmt.Errorf("dynamo: instance %q: segment %d was not committed: %w", t.InstanceID, t.Head.Segment+1,
			provider.ErrLockLost)
	}
	s := t.Segment()
	if err := ob.Segments.Commit(ctx, t, s); err != nil {
		return nil, err
	}
	refused, err := ob.Dispatch(ctx, t, s)
	if err != nil {
		return refused, fmt.Errorf("%w: %w", provider.ErrDispatchIncomplete, err)
	}
	return refused, nil
}

// Dispatch sends the outputs of a committed turn. A terminal status is written after all outputs were accepted, because
// it allows a reuse of the ID (R9). The last steps are best effort.
func (ob *Outbox) Dispatch(
	ctx context.Context, t *provider.Turn, s provider.Segment,
) (refused []provider.OutputFailure, err error) {
	u := instances.AfterTurn(t, s)
	if u.Changed() && !u.Status.Terminal() {
		refused, err = ob.sendWithStatus(ctx, t, s, u)
	} else {
		refused, err = ob.sendSegment(ctx, t, s)
	}
	obsolete := t.ObsoleteTimers()
	if err == nil {
		err = ob.SendActivityEnds(ctx, outputs.TurnOrigin(t), s.Sequence, obsolete)
	}
	if err == nil && u.Status.Terminal() {
		err = ob.writeStatus(ctx, &u)
	}
	if err == nil {
		ob.Timers.DeleteSchedules(ctx, t.Head.ExecutionID, obsolete)
	}
	return refused, err
}

// sendWithStatus sends the outputs and writes the instance concurrently, because neither depends on the other.
func (ob *Outbox) sendWithStatus(
	ctx context.Context, t *provider.Turn, s provider.Segment, u instances.Projection,
) (refused []provider.OutputFailure, err error) {
	err = awscall.Parallel(
		func() error { return ob.writeStatus(ctx, &u) },
		func() (err error) { refused, err = ob.sendSegment(ctx, t, s); return err },
	)
	return refused, err
}

// Redispatch resends the unsettled outputs of the segments that since selects, up to the head, across continue-as-new
// (R4).
func (ob *Outbox) Redispatch(
	ctx context.Context, o *provider.Orchestration, since provider.RedispatchFrom,
) ([]provider.OutputFailure, error) {
	refused, err := ob.redispatch(ctx, o, since)
	markMayHaveStarted(o.Segments, refused)
	return refused, err
}

// markMayHaveStarted records in the rejections of a repeated dispatch that their activities may have started. An
// earlier dispatch may have sent them when the hub had their queue.
func markMayHaveStarted(segments []provider.Segment, refused []provider.OutputFailure) {
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

func (ob *Outbox) redispatch(
	ctx context.Context, o *provider.Orchestration, since provider.RedispatchFrom,
) ([]provider.OutputFailure, error) {
	out := Sender{outbox: ob, repeated: true}
	first := 0 // of the execution itself
	for u, err := range ob.unsentExecutions(ctx, o, since) {
		if err == nil {
			err = out.sendUnsettled(ctx, u)
		}
		if err != nil {
			return nil, err
		}
		if u.Orchestration == o {
			first = u.first
		} else {
			ob.Timers.DeleteSchedules(ctx, u.Head.ExecutionID, ObsoleteTimers(u.Segments, u.first))
		}
	}

	if err := ob.SendActivityEnds(ctx, outputs.HistoryOrigin(o), o.Head.Segment,
		ObsoleteTimers(o.Segments, first)); err != nil {
		return out.Rejected, err
	}
	// segment 0 was written together with the instance
	if u := instances.FromHistory(o); o.Head.Segment > 0 {
		if err := ob.writeStatus(ctx, &u); err != nil {
			return out.Rejected, err
		}
	}
	ob.Timers.DeleteSchedules(ctx, o.Head.ExecutionID, ObsoleteTimers(o.Segments, first))
	return out.Rejected, nil
}

// ObsoleteTimers returns the work whose timers have become obsolete in the given segment or later ones
// (State.ObsoleteTimers).
func ObsoleteTimers(segments []provider.Segment, from int) (all []history.OpenItem) {
	state := history.NewState(history.TrackTimers)
	for i := range segments {
		if i >= from {
			all = append(all, state.ObsoleteTimers(segments[i].Events...)...)
		}
		state.Apply(segments[i].Events...)
	}
	return all
}
