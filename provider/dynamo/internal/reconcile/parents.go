package reconcile

import (
	"context"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
	"github.com/perdure/perdure/provider/outputs"
)

// A child can have a parent that sends no more messages to it. The parent may be purged or erased, or may be a past
// execution that no reconciliation reaches. The reconciliation of a child therefore also checks the parent that should
// wait for it.

// maxParents is the maximum number of cached parents, about 10 MB.
const maxParents = 50_000

// parentState is the state of a parent, as read by a reconciliation. A cached state can be stale. A parent that has
// ended in the meantime sends its own outputs, and no child is cancelled because of a cached state alone.
type parentState struct {
	exists, deleting, ended bool
	executionID             string
	createdAt               time.Time
}

// readParentOnce reads a parent, once for all of its children.
func (rc *Reconciler) readParentOnce(ctx context.Context, run, parentID string) (parentState, error) {
	if s, ok := rc.parents.Get(run + " " + parentID); ok && run != "" {
		return s, nil
	}
	return rc.readParent(ctx, run, parentID)
}

// readParent reads the current state of a parent.
func (rc *Reconciler) readParent(ctx context.Context, run, parentID string) (parentState, error) {
	it, err := rc.Instances.GetRaw(ctx, parentID, provider.Strong)
	if err != nil {
		return parentState{}, err
	}
	s := parentState{
		exists: len(it) > 0 &&
			!instances.IsTombstone(it),
		deleting:    instances.IsDeleting(it),
		ended:       provider.RuntimeStatus(table.GetString(it, table.AttrStatus)).Terminal(),
		executionID: table.GetString(it, table.AttrExecution),
	}
	created := table.GetString(it, table.AttrCreated)
	// the time of a damaged parent is unknown, and does not concern the child
	s.createdAt, _ = time.Parse(table.TimeFormat, created[:min(len(table.TimeFormat), len(created))])
	rc.parents.Add(run+" "+parentID, s, 1)
	return s, nil
}

// waitsFor reports whether the parent's current execution has started the child.
func (s parentState) waitsFor(child *history.Parent) bool {
	return s.exists && !s.deleting && s.executionID == child.ExecutionID
}

// dropUnawaitedParent removes the parent of an ended execution if the parent does not wait for the outcome. The parent
// may have ended, may be purged, or may have continued as new.
func (rc *Reconciler) dropUnawaitedParent(ctx context.Context, run string, x outputs.Origin) (outputs.Origin, error) {
	if !x.Ended || x.Parent == nil {
		return x, nil
	}
	s, err := rc.readParentOnce(ctx, run, x.Parent.InstanceID)
	if err == nil && (!s.exists || s.ended || s.executionID != x.Parent.ExecutionID) {
		x.Parent = nil
	}
	return x, err
}

// cancelOrphan sends a child the cancel of a parent execution that has ended or is being deleted and may not send the
// cancel itself. An execution that ends cancels all of its children. The parent's current execution sends its cancels
// itself, even if it has ended.
func (rc *Reconciler) cancelOrphan(
	ctx context.Context, in *provider.Instance, o *provider.Orchestration, run string, out *provider.ReconcileResult,
) error {
	parent := o.Start().Parent
	if parent == nil || o.Last().Kind.Terminal() || o.State(0).Cancelling {
		return nil
	}
	s, err := rc.readParentOnce(ctx, run, parent.InstanceID)
	// the parent may have continued as new and started the child after it was read
	if err == nil && !s.waitsFor(parent) {
		s, err = rc.readParent(ctx, run, parent.InstanceID)
	}
	if err != nil || s.waitsFor(parent) {
		return err
	}

	reason := history.TerminalReason(history.OrchestrationContinuedAsNew)
	if !s.exists || s.deleting || s.createdAt.After(in.CreatedAt) { // another incarnation of the parent's ID
		reason = history.ReasonInstanceDeleted
	}
	out.Sent++
	return rc.Inbox.Send(ctx, provider.Message{
		Kind: provider.MessageCancel, InstanceID: in.InstanceID, StartID: in.StartID, Reason: reason,
		RequestedBy: history.RequestedByParent + parent.InstanceID, Parent: parent,
	})
}
