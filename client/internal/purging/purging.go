// Package purging purges an instance, optionally with its sub-orchestrations.
package purging

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

const (
	// maxConcurrency limits the children of all levels that are purged concurrently.
	maxConcurrency = 16
	// pageSize is the number of child IDs of each level that are in memory.
	pageSize = 256
)

// Options are the options of Purge.
type Options struct {
	Force     bool
	Children  bool
	CreatedAt *time.Time // nil for any incarnation
}

var errForceWithChildren = &provider.FieldError{
	Field: "withChildren", Problem: "cannot be combined with force; terminate the instance first and wait for its " +
		"children",
}

// Backend is the part of a provider that Purge uses.
type Backend interface {
	ReadInstance(ctx context.Context, instanceID string) (provider.Instance, error)
	ListExecutions(ctx context.Context, instanceID string) iter.Seq2[provider.Execution, error]
	ReadHistory(ctx context.Context, instanceID, executionID string, after int64) iter.Seq2[history.Event, error]
	DeleteInstance(ctx context.Context, instanceID string, force bool) error
	DeleteIncarnation(ctx context.Context, instanceID, startID string, force bool) error
}

// Check checks the options.
func (o *Options) Check() error {
	if o.Force && o.Children {
		return errForceWithChildren
	}
	return nil
}

// Purge purges an instance.
func Purge(ctx context.Context, hub Backend, instanceID string, o Options) error {
	if err := o.Check(); err != nil {
		return err
	}
	if o.CreatedAt == nil && !o.Children {
		return hub.DeleteInstance(ctx, instanceID, o.Force)
	}
	in, err := hub.ReadInstance(ctx, instanceID)
	if err == nil && o.CreatedAt != nil && !in.CreatedAt.Equal(*o.CreatedAt) {
		err = fmt.Errorf("instance %q was created at %s, not at %s: %w", instanceID,
			in.CreatedAt.Format(time.RFC3339Nano), o.CreatedAt.Format(time.RFC3339Nano), provider.ErrNotFound)
	}
	if err != nil {
		return err
	}
	if o.Children {
		return withChildren(ctx, hub, &in)
	}
	return hub.DeleteIncarnation(ctx, instanceID, in.StartID, o.Force) // does not delete a later incarnation of the ID
}

// withChildren purges all ended descendants of an ended instance, and then the instance. It returns
// provider.ErrNotEnded if the instance has not ended.
func withChildren(ctx context.Context, hub Backend, in *provider.Instance) error {
	if !in.Status.Terminal() {
		return fmt.Errorf("instance %q is %s: %w", in.InstanceID, in.Status, provider.ErrNotEnded)
	}
	t := tree{hub: hub, slots: make(chan struct{}, maxConcurrency)}
	return t.purge(ctx, in)
}

// tree is the purge of an instance and its descendants.
type tree struct {
	hub   Backend
	slots chan struct{} // one slot for each goroutine that purges a child
}

// purge purges the children of an instance and then the instance. If the purge of a child fails, the instance is not
// purged, so that a repeated call finds the child.
func (t *tree) purge(ctx context.Context, in *provider.Instance) error {
	if in.Status != provider.StatusDeleting {
		if err := t.purgeChildren(ctx, in); err != nil {
			return err
		}
	}
	return t.hub.DeleteIncarnation(ctx, in.InstanceID, in.StartID, false)
}

// purgeChildren purges the children of all executions of an instance.
func (t *tree) purgeChildren(ctx context.Context, in *provider.Instance) error {
	for x, err := range t.hub.ListExecutions(ctx, in.InstanceID) {
		if err != nil {
			return ignoreNotFound(err)
		}
		parent := history.ExecutionRef{InstanceID: in.InstanceID, ExecutionID: x.ExecutionID}
		if err := t.purgeChildrenOf(ctx, parent); err != nil {
			return err
		}
	}
	return nil
}

// purgeChildrenOf purges the children of an execution, one page after another.
func (t *tree) purgeChildrenOf(ctx context.Context, parent history.ExecutionRef) error {
	var ids []string
	for e, err := range t.hub.ReadHistory(ctx, parent.InstanceID, parent.ExecutionID, 0) {
		if errors.Is(err, provider.ErrNotFound) {
			break // the history is deleted
		}
		if err != nil {
			return fmt.Errorf("instance %q: read children: %w", parent.InstanceID, err)
		}
		if e.Kind != history.SubOrchestrationScheduled {
			continue
		}
		if ids = append(ids, e.InstanceID); len(ids) < pageSize {
			continue
		}
		if err := t.purgePage(ctx, parent, ids); err != nil {
			return err
		}
		ids = ids[:0]
	}
	return t.purgePage(ctx, parent, ids)
}

// purgePage purges children concurrently while slots are free. Without a free slot, it purges a child on its own
// goroutine, so that purges of different levels cannot wait for each other. After an error it starts no further purge.
func (t *tree) purgePage(ctx context.Context, parent history.ExecutionRef, ids []string) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	purge := func(id string) {
		if err := t.purgeChild(ctx, parent, id); err != nil {
			stop(err)
		}
	}
	var running sync.WaitGroup
	for _, id := range ids {
		if ctx.Err() != nil {
			break
		}
		select {
		case t.slots <- struct{}{}:
			running.Go(func() {
				defer func() { <-t.slots }()
				purge(id)
			})
		default:
			purge(id)
		}
	}
	running.Wait()
	return context.Cause(ctx)
}

// purgeChild purges a child that has ended. It ignores an ID that belongs to another instance or to no instance.
func (t *tree) purgeChild(ctx context.Context, of history.ExecutionRef, id string) error {
	in, err := t.hub.ReadInstance(ctx, id)
	switch {
	case err != nil:
		return ignoreNotFound(err)
	case in.Parent == nil || in.Parent.InstanceID != of.InstanceID || in.Parent.ExecutionID != of.ExecutionID,
		!in.Status.Terminal():
		return nil
	default:
		return t.purge(ctx, &in)
	}
}

func ignoreNotFound(err error) error {
	if errors.Is(err, provider.ErrNotFound) {
		return nil
	}
	return err
}
