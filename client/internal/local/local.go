// Package local carries out the operations of a client on a provider.
package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client/internal/cancelling"
	"github.com/perdure/perdure/client/internal/hub"
	"github.com/perdure/perdure/client/internal/leasing"
	"github.com/perdure/perdure/client/internal/purging"
	"github.com/perdure/perdure/client/internal/restarting"
	"github.com/perdure/perdure/client/internal/starting"
	"github.com/perdure/perdure/client/internal/updating"
	"github.com/perdure/perdure/internal/clientcall"
	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/provider"
)

// Hub is a hub that a provider gives access to. It is safe for concurrent use.
type Hub struct{ *hub.Hub }

// CancelActivity cancels an activity.
func (h Hub) CancelActivity(ctx context.Context, instanceID string, activityID int64, message string) error {
	return cancelling.CancelActivity(ctx, h.Hub, instanceID, activityID, message)
}

// Purge purges an instance.
func (h Hub) Purge(ctx context.Context, instanceID string, o purging.Options) error {
	return purging.Purge(ctx, h.Hub, instanceID, o)
}

// Renew renews leases.
func (h Hub) Renew(ctx context.Context, visibility time.Duration, leases []leasing.Lease) ([]leasing.Renewal, error) {
	return leasing.Renew(ctx, h.Hub, visibility, leases)
}

// Start starts an instance.
func (h Hub) Start(ctx context.Context, s *provider.Start, o *starting.Options) error {
	_, err := starting.Run(ctx, h.Hub, s, o.Replaces())
	return err
}

// StartAndRaise starts an instance unless it exists, and raises an event.
func (h Hub) StartAndRaise(
	ctx context.Context, s *provider.Start, o *starting.Options, m provider.Message,
) (started bool, err error) {
	in, err := starting.RunToSend(ctx, h.Hub, s, *o)
	if err != nil {
		return false, fmt.Errorf("start: %w", err)
	}
	return in.StartID == s.StartID, h.Call(ctx, clientcall.Raise, s.InstanceID, m.Name,
		func(ctx context.Context) error { return h.SendTo(ctx, &in, m) })
}

// StartAndUpdate starts an instance unless it exists, sends an update and waits for its result.
func (h Hub) StartAndUpdate(
	ctx context.Context, s *provider.Start, o *starting.Options, u *updating.Update,
) (result *provider.UpdateResult, started, pending bool, err error) {
	in, err := starting.RunToSend(ctx, h.Hub, s, *o)
	if err != nil {
		return nil, false, false, fmt.Errorf("start: %w", err)
	}
	u.SetIncarnation(&in)
	result, pending, err = u.Run(ctx)
	return result, in.StartID == s.StartID, pending, err
}

// RunUpdate sends an update and waits for its result.
func (Hub) RunUpdate(ctx context.Context, u *updating.Update) (*provider.UpdateResult, bool, error) {
	return u.Run(ctx)
}

// CallEntity sends the update of a call of an entity, which it creates if necessary, and waits for its result.
func (h Hub) CallEntity(
	ctx context.Context, entity, _ string, u *updating.Update,
) (*provider.UpdateResult, bool, error) {
	if err := h.createEntity(ctx, entity, u.InstanceID); err != nil {
		return nil, false, err
	}
	return u.Run(ctx)
}

// createEntity starts the instance of a key unless it exists.
func (h Hub) createEntity(ctx context.Context, entity, instanceID string) error {
	in, err := h.ReadInstance(ctx, instanceID)
	switch {
	case err == nil && in.Status != provider.StatusDeleting:
		return nil
	case err != nil && !errors.Is(err, provider.ErrNotFound):
		return err
	}
	o := starting.Options{InstanceID: &instanceID}
	s, err := starting.New(ctx, h.Hub, perdure.EntityOrchestrationName(entity), nil, o)
	if err == nil {
		_, err = starting.RunToSend(ctx, h.Hub, &s, o)
	}
	return err
}

// ExecutionsPage returns a page of executions. The cursor is the ID of the last execution of the previous page.
func (h Hub) ExecutionsPage(
	ctx context.Context, instanceID string, limit int, cursor string,
) (items []provider.Execution, next string, err error) {
	if err := inputcheck.InstanceID(instanceID); err != nil {
		return nil, "", err
	}
	found := cursor == ""
	for x, err := range h.ListExecutions(ctx, instanceID) {
		switch {
		case err != nil:
			return items, "", err
		case !found:
			found = x.ExecutionID == cursor
		case len(items) == limit:
			return items, items[limit-1].ExecutionID, nil
		default:
			items = append(items, x)
		}
	}
	if !found {
		return nil, "", &provider.FieldError{Field: inputcheck.FieldCursor, Problem: "does not belong to this list"}
	}
	return items, "", nil
}

// Restart starts the orchestration of an ended instance again.
func (h Hub) Restart(ctx context.Context, instanceID string, o *starting.Options) (newID string, err error) {
	in, first, err := restarting.ReadEnded(ctx, h.Hub, instanceID)
	if err != nil {
		return "", err
	}
	if o.FromEvent != nil {
		return h.restartFrom(ctx, in, o)
	}
	if _, ok := first.Input.Document(); !ok && !first.Input.IsEncoded() {
		return "", fmt.Errorf("instance %q: history does not contain the input", instanceID)
	}
	return h.restart(ctx, &in, first.Name, starting.RecordedInput(first.Input),
		withDefaults(&in, o, first.Version, first.Tags))
}

// restart makes the start of a restart.
func (h Hub) restart(
	ctx context.Context, in *provider.Instance, name string, input any, o *starting.Options,
) (newID string, err error) {
	s, err := starting.New(ctx, h.Hub, name, input, *o)
	if err == nil {
		newID = s.InstanceID
		err = h.Start(ctx, &s, o)
	}
	if err != nil {
		return newID, fmt.Errorf("instance %q: start %q: %w", in.InstanceID, name, err)
	}
	return newID, nil
}

// withDefaults returns the options of a restart. The caller's options override those of the instance.
func withDefaults(
	in *provider.Instance, o *starting.Options, version string, tags map[string]string,
) *starting.Options {
	key := restarting.Key(in, o.FromEvent)
	newID := restarting.NewInstanceID(in.InstanceID, key)
	with := *o
	with.FromEvent = nil
	with.InstanceID = cmp.Or(o.InstanceID, &newID)
	with.IdempotencyKey = cmp.Or(o.IdempotencyKey, &key)
	if !o.VersionSet {
		with.Version = version
	}
	if !o.TagsSet {
		with.Tags = tags
	}
	return &with
}

func (h Hub) restartFrom(ctx context.Context, in provider.Instance, o *starting.Options) (newID string, err error) {
	from := *o.FromEvent
	source, state, err := restarting.ReadSource(ctx, h.Hub, in, from)
	if err != nil {
		return "", fmt.Errorf("instance %q: %w", in.InstanceID, err)
	}
	with := withDefaults(&in, o, state.Version, source.Events[0].Tags)
	with.FromEvent, with.Source = o.FromEvent, source
	switch {
	case with.Version != state.Version:
		err = &provider.FieldError{
			Field: "version", Problem: fmt.Sprintf("must be %q, the version of the history", state.Version),
		}
	case with.Delay != 0:
		err = &provider.FieldError{Field: "delay", Problem: "cannot be combined with from"}
	default:
		newID, err = h.restart(ctx, &in, state.Name, nil, with)
	}
	if errors.Is(err, provider.ErrTooLarge) {
		tooLong := &provider.FieldError{
			Field: starting.FieldFrom, Problem: "cannot be this event: the history up to it is too large; choose an " +
				"earlier event or omit from",
		}
		err = fmt.Errorf("%w: %w", tooLong, err)
	}
	if err != nil {
		return newID, fmt.Errorf("from event %d: %w", from, err)
	}
	return newID, nil
}
