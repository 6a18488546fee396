package outbox

import (
	"context"
	"errors"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
)

// The delays of repeated writes of the status. The first delay is half a minute, and each further delay is twice as
// long.
const (
	firstRefresh = 30 * time.Second
	lastRefresh  = 15 * time.Minute
)

// writeStatus writes the changes of the instance. The write of a status that is only displayed is best effort.
// Otherwise, a throttled table would cause redeliveries of the turn's messages, and repeated sends of its work. After a
// failure, a refresh writes the status later.
func (ob *Outbox) writeStatus(ctx context.Context, u *instances.Projection) error {
	if !u.Changed() {
		return nil
	}
	err := ob.Instances.Project(ctx, *u)
	if err == nil || u.Required() {
		return err
	}
	requested := ob.scheduleRefresh(
		ctx,
		&provider.Message{InstanceID: u.InstanceID, ExecutionID: u.ExecutionID, Segment: u.Sequence, TimerID: u.Event},
	)
	ob.log.WarnContext(ctx, "status write failed, refreshing it later", "event", logevent.StatusWriteFailed,
		"instance", u.InstanceID, "execution", u.ExecutionID, "status", u.Status, "error", errors.Join(err, requested))
	return nil
}

// scheduleRefresh requests a later write of an instance's status. It uses a timer, which sends a message to the inbox
// only when it is due. A failing refresh therefore does not delay the instance's messages.
func (ob *Outbox) scheduleRefresh(ctx context.Context, wake *provider.Message) error {
	after := min(firstRefresh<<min(wake.Refresh, 8), lastRefresh, ob.Queue.MaxDelay) //nolint:mnd // far beyond the last
	t := provider.Timer{
		V:           provider.WireVersion,
		InstanceID:  wake.InstanceID,
		ExecutionID: wake.ExecutionID,
		Segment:     wake.Segment,
		TimerID:     max(wake.TimerID, 1),
		FireAt:      ob.now().Add(after).UTC(),
		Refresh:     wake.Refresh + 1,
	}
	return ob.Timers.Send(ctx, []provider.Timer{t})
}

// RefreshStatus writes the instance's status from its history. An hour of failures can request several refreshes. Only
// the refresh of the last turn that changed the status continues.
func (ob *Outbox) RefreshStatus(ctx context.Context, wake *provider.Message) error {
	last, err := ob.refreshStatus(ctx, wake)
	if err == nil || !last || !wake.IsRefresh() {
		return err
	}
	return errors.Join(err, ob.scheduleRefresh(ctx, wake))
}

// refreshStatus writes the status. last is true if no later turn than the requesting one is known to have changed the
// status.
func (ob *Outbox) refreshStatus(ctx context.Context, wake *provider.Message) (last bool, err error) {
	in := provider.InboxMessage{Message: *wake}
	o, err := ob.Segments.ReadOrchestration(
		ctx, &provider.OrchestrationItem{InstanceID: wake.InstanceID, Messages: []provider.InboxMessage{in}},
		provider.Strong,
	)
	switch {
	case errors.Is(err, provider.ErrNotFound):
		return false, nil
	case err != nil:
		return !errors.Is(err, provider.ErrCorrupt), err
	case wake.IsRefresh() && o.Head.ExecutionID != wake.ExecutionID || o.Head.Segment == 0:
		return false, nil // the commit of an execution that continued as new has written it
	}
	u := instances.FromHistory(o)
	if u.Required() || o.Last().Kind == history.OrchestrationContinuedAsNew {
		return false, nil
	}
	return !statusChangedAfter(o, wake.Segment), ob.Instances.Project(ctx, u)
}

// statusChangedAfter reports whether a turn after the segment has changed the instance's status, or its custom status.
func statusChangedAfter(o *provider.Orchestration, after int64) bool {
	var state history.State
	for i := range o.Segments {
		before := state.Summary
		state.Apply(o.Segments[i].Events...)
		if int64(i) > max(after, 0) && state.StatusChanged(&before) {
			return true
		}
	}
	return false
}
