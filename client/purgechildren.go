package client

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// WithChildren also purges the sub-orchestrations of an instance that have ended, and their sub-orchestrations.
// Detached orchestrations stay. A child that has not ended stays, with everything below it.
//
// Children are purged first, so that a repeated call finds the rest after a failure or the end of ctx. They are found
// in the histories of the instance's executions. Children of executions that retention has deleted therefore stay, and
// so do the children of an instance whose purge has already started. If a history cannot be read, the error is
// provider.ErrCorrupt: purge that instance without WithChildren.
//
// Besides the writes of Purge, WithChildren reads each history and each child with strongly consistent reads, up to 16
// concurrently. Over HTTP, where a call has half a minute, tens of thousands of children take several calls.
//
// WithChildren requires an instance that has ended and cannot be combined with Force. Terminate a running instance
// first and wait for its children.
func WithChildren() PurgeOption { return func(o *purgeOptions) { o.children = true } }

const (
	// childrenSideBySide bounds how many children are purged at once, of all levels.
	childrenSideBySide = 16
	// childrenPage is how many ids of children are held of each level.
	childrenPage = 256
)

var errForcedFamily = &provider.FieldError{
	Field: "withChildren", Problem: "cannot be combined with force; terminate the instance first and wait for its " +
		"children",
}

// purgeFamily purges an instance that is over, and before it what is over below it.
func (c *Client) purgeFamily(ctx context.Context, in *provider.Instance) error {
	if !in.Status.Terminal() {
		return fmt.Errorf("instance %q is %s: %w", in.InstanceID, in.Status, ErrNotEnded)
	}
	f := family{client: c, slots: make(chan struct{}, childrenSideBySide)}
	return f.purge(ctx, in)
}

// family is a purge of an instance and what is below it.
type family struct {
	client *Client
	slots  chan struct{} // of those that are purged beside others
}

// purge purges an instance that is over: what is below it, and then itself. Where a child could not be purged it stays, so that the child is found again.
func (f *family) purge(ctx context.Context, in *provider.Instance) error {
	if in.Status != StatusDeleting {
		if err := f.purgeBelow(ctx, in); err != nil {
			return err
		}
	}
	return f.client.hub.DeleteIncarnation(ctx, in.InstanceID, in.StartID, false)
}

// purgeBelow purges the children of all executions of an instance.
func (f *family) purgeBelow(ctx context.Context, in *provider.Instance) error {
	for x, err := range f.client.hub.ListExecutions(ctx, in.InstanceID) {
		if err != nil {
			return unlessGone(err)
		}
		if err := f.purgeChildrenOf(ctx, history.ExecutionRef{InstanceID: in.InstanceID, ExecutionID: x.ExecutionID}); err != nil {
			return err
		}
	}
	return nil
}

// purgeChildrenOf purges the children of an execution, a page of them after the other.
func (f *family) purgeChildrenOf(ctx context.Context, of history.ExecutionRef) error {
	var ids []string
	for e, err := range f.client.hub.ReadHistory(ctx, of.InstanceID, of.ExecutionID, 0) {
		if errors.Is(err, ErrNotFound) {
			break // it is erased
		}
		if err != nil {
			return fmt.Errorf("instance %q: read children: %w", of.InstanceID, err)
		}
		if e.Kind != history.SubOrchestrationScheduled {
			continue
		}
		if ids = append(ids, e.InstanceID); len(ids) < childrenPage {
			continue
		}
		if err := f.purgePage(ctx, of, ids); err != nil {
			return err
		}
		ids = ids[:0]
	}
	return f.purgePage(ctx, of, ids)
}

// purgePage purges children side by side, as far as there are slots: a child for which there is none is purged in the place of its parent, so that none waits
// for those above it. After an error it begins no more.
func (f *family) purgePage(ctx context.Context, of history.ExecutionRef, ids []string) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	purge := func(id string) {
		if err := f.purgeChild(ctx, of, id); err != nil {
			stop(err)
		}
	}
	var all sync.WaitGroup
	for _, id := range ids {
		if ctx.Err() != nil {
			break
		}
		select {
		case f.slots <- struct{}{}:
			all.Go(func() {
				defer func() { <-f.slots }()
				purge(id)
			})
		default:
			purge(id)
		}
	}
	all.Wait()
	return context.Cause(ctx)
}

// purgeChild purges a child that is over. An id that is another's by now, or that no child has got, is left alone.
func (f *family) purgeChild(ctx context.Context, of history.ExecutionRef, id string) error {
	in, err := f.client.hub.ReadInstance(ctx, id)
	switch {
	case err != nil:
		return unlessGone(err)
	case in.Parent == nil || in.Parent.InstanceID != of.InstanceID || in.Parent.ExecutionID != of.ExecutionID || !in.Status.Terminal():
		return nil
	default:
		return f.purge(ctx, &in)
	}
}

// unlessGone is nil for an error that says that there is nothing to be purged, or read.
func unlessGone(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}
