package dynamo

import (
	"context"
	"errors"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// When a status is tried again that could not be written: after half a minute, and twice as long after each further try.
const (
	firstRefresh = 30 * time.Second
	lastRefresh  = 15 * time.Minute
)

// required reports whether something depends on the status: an end, which frees the id and which the parent was told of before (R9);
// and Blocked, by which the watch finds the instance (R18). Any other is for people to look at.
func (u *projection) required() bool { return u.status.Terminal() || u.blocked != nil }

// publish writes what changed of the instance. What is only looked at it writes at best: where a table is throttled the messages of
// the turn would come again, and the work that it has sent with them. A refresh writes it then.
func (p *Provider) publish(ctx context.Context, u *projection) error {
	if !u.changed() {
		return nil
	}
	err := p.project(ctx, *u)
	if err == nil || u.required() {
		return err
	}
	asked := p.askRefresh(ctx, &provider.Message{InstanceID: u.instanceID, ExecutionID: u.executionID, Segment: u.sequence, TimerID: u.event})
	p.log.WarnContext(ctx, "the status of an instance was not written: it is behind until it is refreshed", "instance", u.instanceID, "status", u.status,
		"error", errors.Join(err, asked))
	return nil
}

// askRefresh has an instance's status written later. It takes a timer, and the inbox only when that is due: no failure of it holds up
// the messages of the instance.
func (p *Provider) askRefresh(ctx context.Context, wake *provider.Message) error {
	after := min(firstRefresh<<min(wake.Refresh, 8), lastRefresh, p.longestDelay) //nolint:mnd // far beyond the last
	t := provider.Timer{
		V: provider.WireVersion, InstanceID: wake.InstanceID, ExecutionID: wake.ExecutionID, Segment: wake.Segment, TimerID: max(wake.TimerID, 1),
		FireAt: p.now().Add(after).UTC(), Refresh: wake.Refresh + 1,
	}
	return p.delayTimers(ctx, []provider.Timer{t})
}

// RefreshStatus writes what history says of the instance. Of the refreshes that an hour of failures has asked for one goes on: that
// of the last turn which changed the status.
func (p *Provider) RefreshStatus(ctx context.Context, wake *provider.Message) error {
	last, err := p.refresh(ctx, wake)
	if err == nil || !last || !wake.IsRefresh() {
		return err
	}
	return errors.Join(err, p.askRefresh(ctx, wake))
}

// refresh tells whether no turn after that which asked for the refresh has changed the status, as far as is known.
func (p *Provider) refresh(ctx context.Context, wake *provider.Message) (last bool, err error) {
	in := provider.InboxMessage{Message: *wake}
	o, err := p.ReadOrchestration(ctx, &provider.OrchestrationItem{InstanceID: wake.InstanceID, Messages: []provider.InboxMessage{in}}, provider.Strong)
	switch {
	case errors.Is(err, provider.ErrNotFound):
		return false, nil
	case err != nil:
		return !errors.Is(err, provider.ErrCorrupt), err
	case wake.IsRefresh() && o.Head.ExecutionID != wake.ExecutionID || o.Head.Segment == 0:
		return false, nil // what continued as new has written it in its commit
	}
	u := endOf(o)
	if u.required() || o.Last().Kind == history.OrchestrationContinuedAsNew {
		return false, nil
	}
	return !restated(o, wake.Segment), p.project(ctx, u)
}

// restated reports whether a turn after the segment has changed the status of the instance, or its custom status.
func restated(o *provider.Orchestration, after int64) bool {
	for i := max(after+1, 1); i < int64(len(o.Segments)); i++ {
		s := &o.Segments[i]
		if provider.CustomStatusOf(s.Events) != nil || provider.IsCancelling(s.Events) || blockedBy(o.Segments[i-1]) != nil {
			return true
		}
	}
	return false
}
