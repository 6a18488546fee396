package dynamo

import (
	"context"
	"fmt"
	"slices"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// TerminateCorrupt commits an end behind the rest of the history, whose head the keys give. An end that exists already
// is sent again, and the instance's status with it, since the process that committed it may have died in between. An execution that continued
// as new, and is the instance's still, is no end (notWhole).
func (p *Provider) TerminateCorrupt(ctx context.Context, m *provider.InboxMessage) error {
	in, err := p.readInstance(ctx, m.InstanceID, provider.Strong)
	if err != nil || in.Status.Terminal() || m.StartID != "" && m.StartID != in.StartID {
		return err
	}
	d, err := p.salvage(ctx, &in)
	if err != nil {
		return err
	}
	if d.over && d.state.Last != history.OrchestrationContinuedAsNew {
		return p.endDamaged(ctx, &in, d)
	}

	callers, err := p.callersLeft(ctx, &in, d.head.Segment+1)
	if err != nil {
		return err
	}
	now := p.now().UTC()
	end := history.Event{Callers: callers, ID: d.state.LastID + 1, Kind: history.OrchestrationTerminated, Time: now, Message: m.Text, RequestedBy: history.Requester(m.RequestedBy), TraceParent: m.TraceParent}
	t := &provider.Turn{
		InstanceID: in.InstanceID, Head: d.head, Watermark: m.Position, Before: standing(&in),
		Events:  []history.Event{end},
		Cancels: provider.Cancels{{All: true, Reason: history.TerminalReason(end.Kind), At: now}},
	}
	if _, err = p.AckOrchestrationItem(ctx, t); err != nil {
		return fmt.Errorf("dynamo: instance %q: end the unreadable history: %w", in.InstanceID, err)
	}
	return nil
}

// callersLeft finds, in what can be read of a history, the orchestrations that wait for updates which it has not ended: the last ones, where that takes
// long, as these are most likely under way.
func (p *Provider) callersLeft(ctx context.Context, in *provider.Instance, before int64) (callers []history.Parent, err error) {
	giveBack, err := p.takeLarge(ctx)
	if err != nil {
		return nil, err
	}
	defer giveBack()

	began, over := p.now(), map[string]bool{}
	for s, err := range p.segmentsBefore(ctx, in, before) {
		if err != nil {
			return nil, err
		}
		for i := range s.Events {
			if e := &s.Events[i]; e.Kind == history.UpdateCompleted || e.Kind == history.UpdateRejected {
				over[e.EventID] = true
			}
		}
		for e := range awaitedIn(s.Events) {
			if !over[e.EventID] && !slices.Contains(callers, *e.Parent) {
				callers = append(callers, *e.Parent)
			}
		}
		if p.now().Sub(began) > condemnLook {
			break
		}
	}
	return callers, nil
}

// endDamaged sends what the end of a damaged history causes.
func (p *Provider) endDamaged(ctx context.Context, in *provider.Instance, d *deathbed) error {
	end := d.last[len(d.last)-1] // it is whole, or it would not be known to be the end
	head := d.head
	head.Segment = end.Sequence - 1
	_, err := p.dispatch(ctx, &provider.Turn{InstanceID: in.InstanceID, Head: head, Watermark: end.Watermark, Events: end.Events, Before: standing(in)}, end)
	return err
}

// standing is what is known of an instance whose history cannot be read.
func standing(in *provider.Instance) *history.State {
	return &history.State{Summary: history.Summary{StartID: in.StartID, Parent: in.Parent}}
}
