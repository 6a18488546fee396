package deletion

import (
	"context"
	"fmt"
	"slices"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// TerminateCorrupt commits a terminal event behind the readable history. It finds the head from the keys of the
// segments. If the execution already has a terminal event, TerminateCorrupt resends its outputs and rewrites the
// instance's status. The process that committed the event may have crashed before it did so. An execution that
// continued as new and is still the instance's current one does not count as ended.
func (dl *Deleter) TerminateCorrupt(ctx context.Context, m *provider.InboxMessage) error {
	in, err := dl.Instances.ReadWith(ctx, m.InstanceID, provider.Strong)
	if err != nil || in.Status.Terminal() || m.StartID != "" && m.StartID != in.StartID {
		return err
	}
	d, err := dl.history.readDamaged(ctx, &in)
	if err != nil {
		return err
	}
	if d.Ended && d.State.Last != history.OrchestrationContinuedAsNew {
		return dl.dispatchEnd(ctx, &in, d)
	}

	callers, err := dl.waitingCallers(ctx, &in, d.Head.Segment+1)
	if err != nil {
		return err
	}
	now := dl.now().UTC()
	end := history.Event{
		Callers:     callers,
		ID:          d.State.LastID + 1,
		Kind:        history.OrchestrationTerminated,
		Time:        now,
		Message:     m.Text,
		RequestedBy: history.Requester(m.RequestedBy),
		TraceParent: m.TraceParent,
	}
	t := &provider.Turn{
		InstanceID: in.InstanceID, Head: d.Head, Watermark: m.Position, Before: knownState(&in),
		Events:  []history.Event{end},
		Cancels: provider.Cancels{{All: true, Reason: history.TerminalReason(end.Kind), At: now}},
	}
	if _, err = dl.Outbox.Ack(ctx, t); err != nil {
		return fmt.Errorf("dynamo: instance %q: end the unreadable history: %w", in.InstanceID, err)
	}
	return nil
}

// waitingCallers finds the orchestrations that wait for updates without a result, in the readable part of a history.
// If the search takes too long, it finds only the latest callers, which most likely still wait.
func (dl *Deleter) waitingCallers(
	ctx context.Context, in *provider.Instance, before int64,
) (callers []history.Parent, err error) {
	release, err := dl.history.acquireLarge(ctx)
	if err != nil {
		return nil, err
	}
	defer release()

	began, responded := dl.now(), map[string]bool{}
	for s, err := range dl.history.segmentsBefore(ctx, in, before) {
		if err != nil {
			return nil, err
		}
		for i := range s.Events {
			if e := &s.Events[i]; e.Kind == history.UpdateCompleted || e.Kind == history.UpdateRejected {
				responded[e.EventID] = true
			}
		}
		for e := range awaitedUpdates(s.Events) {
			if !responded[e.EventID] && !slices.Contains(callers, *e.Parent) {
				callers = append(callers, *e.Parent)
			}
		}
		if dl.now().Sub(began) > maxReadTime {
			break
		}
	}
	return callers, nil
}

// dispatchEnd sends the outputs of the end of a damaged history.
func (dl *Deleter) dispatchEnd(ctx context.Context, in *provider.Instance, d *finalExecution) error {
	end := d.Last[len(d.Last)-1] // the last segment is complete, because it was recognized as the end
	head := d.Head
	head.Segment = end.Sequence - 1
	_, err := dl.Outbox.Dispatch(
		ctx,
		&provider.Turn{
			InstanceID: in.InstanceID,
			Head:       head,
			Watermark:  end.Watermark,
			Events:     end.Events,
			Before:     knownState(in),
		},
		end,
	)
	return err
}

// knownState returns the known state of an instance whose history cannot be read.
func knownState(in *provider.Instance) *history.State {
	return &history.State{Summary: history.Summary{StartID: in.StartID, Parent: in.Parent}}
}
