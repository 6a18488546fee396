package dynamo

import (
	"context"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// A child may have been left by a parent that tells it nothing more: one that was purged, that is erased, or of an execution which no
// reconciliation of the parent reaches. So each side looks at the other: the child at the parent that should wait for it.

// parentsKnown bounds how many parents are remembered: some 10 MB.
const parentsKnown = 50_000

// parentState is what a reconciliation has seen of a parent. What is remembered may be behind: a parent that has ended since sends what that
// causes by itself, and no child is cancelled for what is remembered alone.
type parentState struct {
	there, deleting, over bool
	executionID           string
	createdAt             time.Time
}

// parentOf looks at a parent, once for all of its children.
func (p *Provider) parentOf(ctx context.Context, run, parentID string) (parentState, error) {
	if s, ok := p.parents.get(run + " " + parentID); ok && run != "" {
		return s, nil
	}
	return p.lookAtParent(ctx, run, parentID)
}

// lookAtParent looks at a parent as it is now.
func (p *Provider) lookAtParent(ctx context.Context, run, parentID string) (parentState, error) {
	it, err := p.rawInstance(ctx, parentID, provider.Strong)
	if err != nil {
		return parentState{}, err
	}
	s := parentState{
		there: len(it) > 0 && !isTombstone(it), deleting: isDeleting(it), over: provider.RuntimeStatus(getString(it, attrStatus)).Terminal(),
		executionID: getString(it, attrExecution),
	}
	created := getString(it, attrCreated)
	s.createdAt, _ = time.Parse(timeFormat, created[:min(len(timeFormat), len(created))]) // of a damaged parent it is not known, and none of the child's business
	p.parents.add(run+" "+parentID, s, 1)
	return s, nil
}

// waitsFor reports whether a parent's current execution is the one that has started a child.
func (s parentState) waitsFor(child *history.Parent) bool {
	return s.there && !s.deleting && s.executionID == child.ExecutionID
}

// awaited leaves out the parent of an execution that is over, where nobody waits for the outcome: that parent is over, gone, or
// has continued as new.
func (p *Provider) awaited(ctx context.Context, run string, x provider.Origin) (provider.Origin, error) {
	if !x.Ended || x.Parent == nil {
		return x, nil
	}
	s, err := p.parentOf(ctx, run, x.Parent.InstanceID)
	if err == nil && (!s.there || s.over || s.executionID != x.Parent.ExecutionID) {
		x.Parent = nil
	}
	return x, err
}

// cancelLeft sends a child the cancel that it is owed by an execution which has ended, or is being deleted, and cannot be relied on to send it:
// one that ends cancels all of its children. Its current execution, over or not, sends its cancels itself.
func (p *Provider) cancelLeft(ctx context.Context, in *provider.Instance, o *provider.Orchestration, run string, out *provider.ReconcileResult) error {
	parent := o.Start().Parent
	if parent == nil || o.Last().Kind.Terminal() || o.State(0).Cancelling {
		return nil
	}
	s, err := p.parentOf(ctx, run, parent.InstanceID)
	if err == nil && !s.waitsFor(parent) { // the parent may have continued as new since it was seen, and have started the child then
		s, err = p.lookAtParent(ctx, run, parent.InstanceID)
	}
	if err != nil || s.waitsFor(parent) {
		return err
	}

	reason := history.TerminalReason(history.OrchestrationContinuedAsNew)
	if !s.there || s.deleting || s.createdAt.After(in.CreatedAt) { // another life of the parent's id
		reason = history.ReasonInstanceDeleted
	}
	out.Sent++
	return p.EnqueueForOrchestrator(ctx, provider.Message{
		Kind: provider.MessageCancel, InstanceID: in.InstanceID, StartID: in.StartID, Reason: reason,
		RequestedBy: history.RequestedByParent + parent.InstanceID, Parent: parent,
	})
}
