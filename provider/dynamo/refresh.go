package dynamo

import (
	"context"
	"errors"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// The times after which writing a status is tried again: half a minute, and twice as long after each further try.
const (
	firstRefresh = 30 * time.Second
	lastRefresh  = 15 * time.Minute
)

// required reports whether something depends on the status: an end, which frees the id after the parent's outcome was
// sent (R9), and Blocked, by which the watch finds the instance (R18). Any other status is only displayed.
func (u *projection) required() bool { return u.status.Terminal() || u.blocked.Active }

// publish writes what changed of the instance. A status that is only displayed is best effort: if it failed where a
// table is throttled, the turn's messages would be delivered again, and its work sent again with them. A refresh writes
// it later.
func (p *Provider) publish(ctx context.Context, u *projection) error {
	if !u.changed() {
		return nil
	}
	err := p.project(ctx, *u)
	if err == nil || u.required() {
		return err
	}
	asked := p.askRefresh(ctx, &provider.Message{InstanceID: u.instanceID, ExecutionID: u.executionID, Segment: u.sequence, TimerID: u.event})
	p.log.WarnContext(ctx, "status write failed, refreshing it later", "event", logevent.StatusWriteFailed,
		"instance", u.instanceID, "execution", u.executionID, "status", u.status, "error", errors.Join(err, asked))
	return nil
}

// askRefresh requests that an instance's status be written later. It uses a timer, and the inbox only when that is due,
// so that no failure of the refresh holds up the instance's messages.
func (p *Provider) askRefresh(ctx context.Context, wake *provider.Message) error {
	after := min(firstRefresh<<min(wake.Refresh, 8), lastRefresh, p.longestDelay) //nolint:mnd // far beyond the last
	t := provider.Timer{
		V: provider.WireVersion, InstanceID: wake.InstanceID, ExecutionID: wake.ExecutionID, Segment: wake.Segment, TimerID: max(wake.TimerID, 1),
		FireAt: p.now().Add(after).UTC(), Refresh: wake.Refresh + 1,
	}
	return p.delayTimers(ctx, []provider.Timer{t})
}

// RefreshStatus writes the instance's status from its history. An hour of failures can request several refreshes. Only
// the refresh of the last turn that changed the status continues.
func (p *Provider) RefreshStatus(ctx context.Context, wake *provider.Message) error {
	last, err := p.refresh(ctx, wake)
	if err == nil || !last || !wake.IsRefresh() {
		return err
	}
	return errors.Join(err, p.askRefresh(ctx, wake))
}

// refresh writes the status. last reports whether, as far as is known, no turn after the one that requested the refresh
// has changed the status.
func (p *Provider) refresh(ctx context.Context, wake *provider.Message) (last bool, err error) {
	in := provider.InboxMessage{Message: *wake}
	o, err := p.ReadOrchestration(ctx, &provider.OrchestrationItem{InstanceID: wake.InstanceID, Messages: []provider.InboxMessage{in}}, provider.Strong)
	switch {
	case errors.Is(err, provider.ErrNotFound):
		return false, nil
	case err != nil:
		return !errors.Is(err, provider.ErrCorrupt), err
	case wake.IsRefresh() && o.Head.ExecutionID != wake.ExecutionID || o.Head.Segment == 0:
		return false, nil // an execution that continued as new has written it in its commit
	}
	u := projectionOfHistory(o)
	if u.required() || o.Last().Kind == history.OrchestrationContinuedAsNew {
		return false, nil
	}
	return !restated(o, wake.Segment), p.project(ctx, u)
}

// restated reports whether a turn after the segment has changed the instance's status, or its custom status.
func restated(o *provider.Orchestration, after int64) bool {
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
