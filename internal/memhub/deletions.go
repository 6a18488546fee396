package memhub

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/outputs"
)

// deletions deletes instances.
type deletions struct {
	*base

	histories  *histories
	instances  *instances
	activities *activities
	rejections *rejections
	outbox     *outbox
}

// DeleteInstance implements provider.Instances. It deletes immediately, so no instance has the status Deleting.
func (st *deletions) DeleteInstance(ctx context.Context, instanceID string, force bool) error {
	return st.call(ctx, func() error {
		in, err := st.instances.find(instanceID)
		switch {
		case err != nil:
			return err
		case !in.Status.Terminal() && !force:
			return fmt.Errorf("fake: instance %q is %s: %w", instanceID, in.Status, provider.ErrNotEnded)
		case !in.Status.Terminal():
			st.endForDeletion(ctx, in)
		}
		id := st.instances.byID[instanceID]
		last := in.current().segments
		id.instance, id.purgedAt, id.watermark = nil, st.time(), last[len(last)-1].Watermark
		id.spent[in.StartID] = true
		for _, x := range in.executions {
			x.erase(st.now())
			delete(st.activities.byID, x.ExecutionID)
		}
		for key, r := range st.rejections.results {
			if r.InstanceID == instanceID {
				delete(st.rejections.results, key)
			}
		}
		return nil
	})
}

// endForDeletion ends an execution, unless it has ended already, and sends the outputs of its last turns for others.
func (st *deletions) endForDeletion(ctx context.Context, in *instance) {
	x := in.current()
	state := x.state(history.TrackOpen)
	if !state.Ended() {
		last := x.segments[len(x.segments)-1]
		by, _ := provider.RequesterOf(ctx)
		deletion := outputs.Deletion{
			Cancels: state.CancelOutstanding(history.ReasonInstanceDeleted), RequestedBy: history.Requester(by),
			TraceParent: x.segments[0].Events[0].TraceParent, At: st.time(),
		}
		events := deletion.Events(state)
		x.add(provider.Segment{Sequence: last.Sequence + 1, Watermark: last.Watermark, Events: events}, nil)
	}
	st.sendLast(in, x, 2) // the previous turn may have died before it sent its outputs
	if previous := st.histories.byID[x.previous]; previous != nil && len(x.segments) <= 2 {
		st.sendLast(in, previous, 1)
	}
}

// sendLast resends the outputs of the last n segments of an execution that has ended.
func (st *deletions) sendLast(in *instance, x *execution, n int) {
	origin := outputs.Origin{
		InstanceID: in.InstanceID, ExecutionID: x.ExecutionID, StartID: in.StartID, Parent: in.Parent, Ended: true,
	}
	const messageLifetime = 14 * 24 * time.Hour
	for _, s := range x.segments[max(0, len(x.segments)-n):] {
		old := map[int64]bool{}
		for i := range s.Events {
			e := &s.Events[i]
			survives := e.Kind == history.DetachedOrchestrationScheduled || e.Kind == history.ExternalEventSent ||
				e.Kind == history.UpdateSent
			old[e.ID] = survives && st.now().Sub(e.Time) >= messageLifetime
		}
		st.outbox.send(outputs.Of(origin, s, func(id int64) bool { return old[id] }))
	}
}

// DeleteIncarnation implements provider.Instances.
func (st *deletions) DeleteIncarnation(ctx context.Context, instanceID, startID string, force bool) error {
	in, err := st.instances.ReadInstance(ctx, instanceID)
	if errors.Is(err, provider.ErrNotFound) || err == nil && in.StartID != startID {
		return nil
	}
	if err != nil {
		return err
	}
	return st.DeleteInstance(ctx, instanceID, force)
}
