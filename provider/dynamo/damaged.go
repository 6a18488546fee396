package dynamo

import (
	"context"
	"fmt"
	"slices"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// TerminateCorrupt commits a terminal event behind the readable history. It finds the head from the keys of the
// segments. If the execution has a terminal event already, TerminateCorrupt sends its outputs and writes the instance's
// status again, because the process that committed it may have died before that. An execution that continued as new and
// is still the instance's current one does not count as ended (errIncomplete).
func (p *Provider) TerminateCorrupt(ctx context.Context, m *provider.InboxMessage) error {
	in, err := p.instances.ReadWith(ctx, m.InstanceID, provider.Strong)
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
	if _, err = p.outbox.Ack(ctx, t); err != nil {
		return fmt.Errorf("dynamo: instance %q: end the unreadable history: %w", in.InstanceID, err)
	}
	return nil
}

// callersLeft finds the orchestrations that wait for updates without a result, in the readable part of a history. If
// that takes long, it finds only the latest ones, which most likely still wait.
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

// endDamaged sends the outputs of the end of a damaged history.
func (p *Provider) endDamaged(ctx context.Context, in *provider.Instance, d *deathbed) error {
	end := d.last[len(d.last)-1] // the last segment is complete, otherwise it would not be known as the end
	head := d.head
	head.Segment = end.Sequence - 1
	_, err := p.outbox.Dispatch(ctx, &provider.Turn{InstanceID: in.InstanceID, Head: head, Watermark: end.Watermark, Events: end.Events, Before: standing(in)}, end)
	return err
}

// standing returns the known state of an instance whose history cannot be read.
func standing(in *provider.Instance) *history.State {
	return &history.State{Summary: history.Summary{StartID: in.StartID, Parent: in.Parent}}
}
