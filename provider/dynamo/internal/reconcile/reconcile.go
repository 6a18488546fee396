// Package reconcile restores the queues of a hub from its histories, after a table was restored or queues were purged.
package reconcile

import (
	"context"
	"errors"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/activityrecords"
	"github.com/perdure/perdure/provider/dynamo/internal/cancels"
	"github.com/perdure/perdure/provider/dynamo/internal/deletion"
	"github.com/perdure/perdure/provider/dynamo/internal/inbox"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/lru"
	"github.com/perdure/perdure/provider/dynamo/internal/outbox"
	"github.com/perdure/perdure/provider/dynamo/internal/rejections"
	"github.com/perdure/perdure/provider/dynamo/internal/segments"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsqueue"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
	"github.com/perdure/perdure/provider/dynamo/internal/timers"
	"github.com/perdure/perdure/provider/outputs"
)

// Stores are the stores that a Reconciler reads and writes.
type Stores struct {
	Queue      *sqsqueue.Queues
	Inbox      *inbox.Inbox
	Timers     *timers.Timers
	Instances  *instances.Store
	Segments   *segments.Store
	Cancels    *cancels.Store
	Attempts   *activityrecords.Store
	Outbox     *outbox.Outbox
	Rejections *rejections.Rejections
	Deleter    *deletion.Deleter
}

// Reconciler resends the outputs of instances, and purges queues. It is safe for concurrent use.
type Reconciler struct {
	Stores

	now func() time.Time
	// parents caches the states of parents.
	parents *lru.Cache[parentState]
}

// New returns a reconciler.
func New(s Stores, now func() time.Time) *Reconciler {
	return &Reconciler{Stores: s, now: now, parents: lru.New[parentState](maxParents)}
}

// Reconcile sends outputs from history, like a redispatch. It ignores stored dispatch records and cursors,
// because they describe queues whose messages are lost. It stores new dispatch records, so that the redispatch after
// the wake does not send the same outputs again.
func (rc *Reconciler) Reconcile(
	ctx context.Context, instanceID string, r provider.ReconcileOptions,
) (out provider.ReconcileResult, err error) {
	it, err := rc.Instances.Get(ctx, instanceID, provider.Strong)
	switch {
	case errors.Is(err, provider.ErrNotFound):
		return provider.ReconcileResult{NotFound: true}, nil
	case err != nil:
		return out, err
	case instances.IsDeleting(it):
		err = rc.Deleter.DeleteInstance(ctx, instanceID, false)
		if errors.Is(err, provider.ErrNotFound) || errors.Is(err, provider.ErrNotEnded) {
			err = nil // another process has completed it
		}
		return provider.ReconcileResult{Deleted: err == nil}, err
	}

	in, err := instances.Decode(it)
	if err != nil {
		return out, err
	}
	out.Ended = in.Status.Terminal()
	out.EndedBeforeSince = out.Ended && in.UpdatedAt.Before(r.Since)

	err = rc.resendAll(ctx, &in, r, &out)
	if out.Ended || out.NotFound || err != nil && !errors.Is(err, provider.ErrCorrupt) {
		return out, err
	}
	// A damaged instance is also woken, because its turn sets the status to Blocked.
	wake := provider.Message{
		Kind: provider.MessageWake, InstanceID: instanceID,
		Redrive: &provider.Redrive{Record: table.Digest("reconcile", r.Run, instanceID), Times: 1},
	}
	if woken := rc.Inbox.Send(ctx, wake); woken != nil {
		return out, woken
	}
	out.Sent++
	return out, err
}

// resendAll resends the outputs of an instance's executions, the current execution first.
func (rc *Reconciler) resendAll(
	ctx context.Context, in *provider.Instance, r provider.ReconcileOptions, out *provider.ReconcileResult,
) error {
	next := ""
	for id, n := in.ExecutionID, 0; id != ""; n++ {
		// an execution ended when the next one started
		if n > 0 && segments.StartedBefore(next, r.Since) {
			return nil
		}
		if n > provider.MaxPastExecutions {
			out.Truncated = true
			return nil
		}

		var notes []table.Item
		o, err := rc.Segments.ReadExecutionWithNotes(ctx, in.InstanceID, id, provider.Strong, &notes)
		if n == 0 {
			err = rc.checkConsistent(ctx, in, o, err)
		}
		if errors.Is(err, provider.ErrNotFound) {
			out.NotFound = n == 0 // deleted in the meantime, or a past execution that is erased (R21)
			return nil
		}
		if err != nil {
			return err
		}
		if err := rc.resend(ctx, o, notes, r, out); err != nil {
			return err
		}
		if n == 0 {
			if err := rc.cancelOrphan(ctx, in, o, r.Run, out); err != nil {
				return err
			}
		}
		next, id = id, o.Previous
	}
	return nil
}

// checkConsistent reads an instance again if its execution does not exist or has continued as another one. The instance
// may be incomplete, or may no longer exist.
func (rc *Reconciler) checkConsistent(
	ctx context.Context, in *provider.Instance, o *provider.Orchestration, err error,
) error {
	if !errors.Is(err, provider.ErrNotFound) && (err != nil || o.Last().Kind != history.OrchestrationContinuedAsNew) {
		return err
	}
	if _, now := rc.Segments.ReadCurrent(ctx, in.InstanceID, in.ExecutionID, provider.Strong); now != nil ||
		err == nil {
		return now // an execution that continued as new in the meantime sends its own outputs
	}
	// the ID now belongs to another incarnation
	return &provider.Error{Op: "ReconcileInstance", InstanceID: in.InstanceID, Retryable: true, Err: err}
}

// resend resends the unsettled outputs of an execution. The wake of a running instance causes a redispatch, which sends
// detached starts up to MaxReconcileLookback. resend therefore also sends these starts, and omits only older ones.
func (rc *Reconciler) resend(
	ctx context.Context, o *provider.Orchestration, notes []table.Item, r provider.ReconcileOptions,
	out *provider.ReconcileResult,
) error {
	x, err := rc.dropUnawaitedParent(ctx, r.Run, outputs.HistoryOrigin(o))
	if err != nil {
		return err
	}
	since := r.Since
	if most := rc.now().Add(-provider.MaxReconcileLookback); !out.Ended && most.Before(since) {
		since = most
	}
	u := outbox.SkippedBefore(o, since, rc.now())
	out.SkippedOutputs += u.Dropped
	if !x.Ended {
		if err := rc.checkOldStarts(ctx, x, &u, out); err != nil {
			return err
		}
		if err := rc.Cancels.DeleteUncommitted(ctx, o, u.Has); err != nil {
			return err
		}
	}
	sent, refused, err := rc.Outbox.Resend(ctx, o, x, u.Has, r.Run, notes)
	out.Sent += sent
	out.RejectedOutputs = append(out.RejectedOutputs, refused...)
	if err != nil {
		return err
	}
	if err := rc.Outbox.SendActivityEnds(ctx, x, o.Head.Segment, outbox.ObsoleteTimers(o.Segments, 0)); err != nil {
		return err
	}
	return rc.resendAttempts(ctx, o, out)
}

// schedulingSegments returns the segments that scheduled an execution's activities, by activity ID.
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

// resendAttempts sends timers for the current attempts of activities that failed before or are pending, and that are
// open, or cancelled and awaited. A due timer starts its attempt if the attempt is still the current one (R14), or
// checks the limits of a pending attempt.
func (rc *Reconciler) resendAttempts(
	ctx context.Context, o *provider.Orchestration, out *provider.ReconcileResult,
) error {
	scheduledIn := schedulingSegments(o)
	if o.Last().Kind.Terminal() || len(scheduledIn) == 0 {
		return nil
	}

	state := o.State(history.TrackOpen)
	var due []provider.Timer
	for current, err := range rc.Attempts.ReadRetries(ctx, o.Head.ExecutionID) {
		if err != nil {
			return err
		}
		a, there := state.Open(current.ActivityID)
		if !there || a.Kind != history.ActivityScheduled || a.OutcomeParked ||
			(a.Cancelled || a.CancelRequestParked) && !a.WaitsForCancellation {
			continue
		}
		at := current.At
		if current.Pending != nil {
			at = current.NextCheckAt
		}
		if at.IsZero() { // pending without a limit
			continue
		}
		due = append(due, provider.Timer{
			V:                   provider.WireVersion,
			InstanceID:          o.InstanceID,
			ExecutionID:         o.Head.ExecutionID,
			Segment:             scheduledIn[current.ActivityID],
			TimerID:             current.ActivityID,
			FireAt:              at,
			Attempt:             current.Attempt,
			WaitForCancellation: current.Pending != nil && a.WaitsForCancellation,
		})
	}
	out.Sent += len(due)
	return rc.Timers.Send(ctx, due)
}
