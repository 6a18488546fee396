package dynamo

import (
	"context"
	"errors"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

var _ provider.Reconciler = (*Provider)(nil)

// ReconcileInstance sends outputs from history, like a redispatch. It ignores stored dispatch records and cursors,
// because they describe queues whose messages are lost. It stores new dispatch records, so that the redispatch after
// the wake does not send the same outputs again.
func (p *Provider) ReconcileInstance(ctx context.Context, instanceID string, r provider.ReconcileOptions) (out provider.ReconcileResult, err error) {
	it, err := p.getInstance(ctx, instanceID, provider.Strong)
	switch {
	case errors.Is(err, provider.ErrNotFound):
		return provider.ReconcileResult{NotFound: true}, nil
	case err != nil:
		return out, err
	case isDeleting(it):
		err = p.DeleteInstance(ctx, instanceID, false)
		if errors.Is(err, provider.ErrNotFound) || errors.Is(err, provider.ErrNotEnded) {
			err = nil // another process has finished it
		}
		return provider.ReconcileResult{Deleted: err == nil}, err
	}

	in, err := decodeInstance(it)
	if err != nil {
		return out, err
	}
	out.Ended = in.Status.Terminal()
	out.EndedBeforeSince = out.Ended && in.UpdatedAt.Before(r.Since)

	err = p.resendAll(ctx, &in, r, &out)
	if out.Ended || out.NotFound || err != nil && !errors.Is(err, provider.ErrCorrupt) {
		return out, err
	}
	// A damaged instance is woken all the same: its turn says so (Blocked).
	wake := provider.Message{
		Kind: provider.MessageWake, InstanceID: instanceID,
		Redrive: &provider.Redrive{Record: digest("reconcile", r.Run, instanceID), Times: 1},
	}
	if woken := p.EnqueueForOrchestrator(ctx, wake); woken != nil {
		return out, woken
	}
	out.Sent++
	return out, err
}

// resendAll sends again what the executions of an instance have caused, the current one first.
func (p *Provider) resendAll(ctx context.Context, in *provider.Instance, r provider.ReconcileOptions, out *provider.ReconcileResult) error {
	next := ""
	for id, n := in.ExecutionID, 0; id != ""; n++ {
		if n > 0 && isBefore(provider.ExecutionStartedAt(next), r.Since) { // an execution ended when the next one began
			return nil
		}
		if n > provider.MaxPastExecutions {
			out.Truncated = true
			return nil
		}

		var notes []item
		o, err := p.readExecutionWith(ctx, in.InstanceID, id, provider.Strong, &notes)
		if n == 0 {
			err = p.ofOneMoment(ctx, in, o, err)
		}
		if errors.Is(err, provider.ErrNotFound) {
			out.NotFound = n == 0 // deleted meanwhile; a past one is erased (R21)
			return nil
		}
		if err != nil {
			return err
		}
		if err := p.resend(ctx, o, notes, r, out); err != nil {
			return err
		}
		if n == 0 {
			if err := p.cancelLeft(ctx, in, o, r.Run, out); err != nil {
				return err
			}
		}
		next, id = id, o.Previous
	}
	return nil
}

// ofOneMoment looks again at an instance whose execution is not there, or has continued as another: it may not be whole, or not be there any more.
func (p *Provider) ofOneMoment(ctx context.Context, in *provider.Instance, o *provider.Orchestration, err error) error {
	if !errors.Is(err, provider.ErrNotFound) && (err != nil || o.Last().Kind != history.OrchestrationContinuedAsNew) {
		return err
	}
	if _, now := p.readCurrent(ctx, in.InstanceID, in.ExecutionID, provider.Strong); now != nil || err == nil {
		return now // what continued as new meanwhile sends what it causes
	}
	return &provider.Error{Op: "ReconcileInstance", InstanceID: in.InstanceID, Retryable: true, Err: err} // it has another life by now
}

// resend sends again what an execution has caused, as far as it is not settled. The wake of an instance that is not over leads to a redispatch,
// which sends detached starts up to MaxReconcileLookback: so they are sent here, too, and only what is older is left out.
func (p *Provider) resend(ctx context.Context, o *provider.Orchestration, notes []item, r provider.ReconcileOptions, out *provider.ReconcileResult) error {
	x, err := p.awaited(ctx, r.Run, o.Origin())
	if err != nil {
		return err
	}
	since := r.Since
	if most := p.now().Add(-provider.MaxReconcileLookback); !out.Ended && most.Before(since) {
		since = most
	}
	u := p.unsentBefore(o, since)
	out.SkippedOutputs += u.leftOut
	if !x.Ended {
		if err := p.seeToOld(ctx, x, &u, out); err != nil {
			return err
		}
		if err := p.forgetUndecided(ctx, o, u.has); err != nil {
			return err
		}
	}
	if err := p.resendOutputs(ctx, o, x, u.has, r.Run, notes, out); err != nil {
		return err
	}
	if err := p.sendEnds(ctx, x, o.Head.Segment, cancelledTimers(o.Segments, 0)); err != nil {
		return err
	}
	return p.resendAttempts(ctx, o, out)
}

// resendOutputs sends the outputs of an execution that are not settled.
func (p *Provider) resendOutputs(ctx context.Context, o *provider.Orchestration, x provider.Origin, settled func(int64) bool, run string, notes []item, out *provider.ReconcileResult) error {
	n := 0
	for _, s := range o.Segments {
		sent := provider.OutputsOf(x, s, settled)
		n += sent.Count()
	}
	if n == 0 {
		return nil // as of nearly all past executions
	}
	out.Sent += n

	fresh, err := p.forgetTaken(ctx, o, notes, run)
	if err != nil {
		return err
	}
	b := outbox{p: p, again: true, run: run}
	b.taken = takenOutputs{instanceID: o.InstanceID, executionID: o.Head.ExecutionID, head: o.Head.Segment, known: fresh, run: run}
	defer b.writeNote(ctx)
	for _, s := range o.Segments {
		if err := b.send(ctx, x, s, settled); err != nil {
			return err
		}
	}
	if _, err := b.flush(ctx); err != nil {
		return err
	}
	out.RejectedOutputs = append(out.RejectedOutputs, b.refused...)
	return nil
}

// forgetTaken deletes the notes and cursors of an execution: what they say was taken is in no queue any more. Those of the
// same reconciliation stay, so that one whose calls fail goes on where it was, and so do those of a later one that runs
// beside it, or each would send again what the other has sent. fresh reports that there are none of these.
func (p *Provider) forgetTaken(ctx context.Context, o *provider.Orchestration, notes []item, run string) (fresh bool, err error) {
	fresh = true
	for _, note := range notes {
		if run != "" && getString(note, attrTakenBy) >= run {
			fresh = false
			continue
		}
		if err := p.removeItem(ctx, o.InstanceID, item{attrPK: note[attrPK], attrSK: note[attrSK]}); err != nil {
			return false, err
		}
	}
	return fresh, nil
}

// schedulingSegments returns the segments that scheduled an execution's activities, by the ids of these.
func schedulingSegments(o *provider.Orchestration) map[int64]int64 {
	scheduledIn := map[int64]int64{}
	for i := range o.Segments {
		for j := range o.Segments[i].Events {
			if e := &o.Segments[i].Events[j]; e.Kind == history.ActivityScheduled {
				scheduledIn[e.ID] = o.Segments[i].Sequence
			}
		}
	}
	return scheduledIn
}

// resendAttempts sends timers for the current attempts of activities that have failed before, or are pending, and are
// open, or are cancelled and waited for. A timer that is due leads to its attempt, if that is still the current one
// (R14), or to a look at the limits of one that is pending.
func (p *Provider) resendAttempts(ctx context.Context, o *provider.Orchestration, out *provider.ReconcileResult) error {
	scheduledIn := schedulingSegments(o)
	if o.Last().Kind.Terminal() || len(scheduledIn) == 0 {
		return nil
	}

	state := o.State(history.TrackOpen)
	var due []provider.Timer
	for current, err := range p.ReadRetries(ctx, o.Head.ExecutionID) {
		if err != nil {
			return err
		}
		a, there := state.Open(current.ActivityID)
		if !there || a.Kind != history.ActivityScheduled || a.OutcomeParked || (a.Cancelled || a.CancelRequestParked) && !a.WaitsForCancellation {
			continue
		}
		at := current.At
		if current.Pending != nil {
			at = current.NextCheckAt
		}
		if at.IsZero() { // it is pending, and has no limit
			continue
		}
		due = append(due, provider.Timer{
			V: provider.WireVersion, InstanceID: o.InstanceID, ExecutionID: o.Head.ExecutionID, Segment: scheduledIn[current.ActivityID],
			TimerID: current.ActivityID, FireAt: at, Attempt: current.Attempt, WaitForCancellation: current.Pending != nil && a.WaitsForCancellation,
		})
	}
	out.Sent += len(due)
	return p.delayTimers(ctx, due)
}
