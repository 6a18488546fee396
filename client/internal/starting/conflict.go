package starting

import (
	"context"
	"errors"
	"fmt"

	"github.com/perdure/perdure/client/internal/hub"
	"github.com/perdure/perdure/provider"
)

// ReplacedMessage is the message with which Replace terminates an instance.
const ReplacedMessage = "replaced by another start with its ID"

// Replaces reports whether a start replaces an existing instance with this status. Otherwise the start keeps the
// instance. If the function is nil, a conflict is an error.
type Replaces func(status provider.RuntimeStatus) bool

// Replaces returns the function for the policy of the options.
func (o *Options) Replaces() Replaces {
	if o.IfExists == nil {
		return nil
	}
	replace := *o.IfExists == Replace
	return func(provider.RuntimeStatus) bool { return replace }
}

// begin makes a start and deletes its stored input if it created no instance.
func begin(ctx context.Context, h *hub.Hub, s *provider.Start, replaces Replaces) (in provider.Instance, err error) {
	in, err = resolve(ctx, h, s, replaces)
	conflict := err
	if err == nil && in.StartID != s.StartID {
		conflict = provider.ErrAlreadyExists
	}
	deleteUnusedInput(ctx, h, s, &in, conflict)
	return in, err
}

// resolve makes a start until it succeeds or finds an instance that it keeps.
func resolve(ctx context.Context, h *hub.Hub, s *provider.Start, replaces Replaces) (in provider.Instance, err error) {
	for {
		in, err = h.StartOrchestration(ctx, *s)
		if replaces == nil || !errors.Is(err, provider.ErrAlreadyExists) || errors.Is(err, provider.ErrPurged) {
			return in, err
		}
		if err = nil; in.StartID == "" {
			in, err = h.ReadInstance(ctx, s.InstanceID)
		}
		switch {
		case errors.Is(err, provider.ErrNotFound): // the instance was purged in between
			err = nil
		case err != nil:
		case replaces(in.Status):
			err = remove(ctx, h, &in)
		case in.Status == provider.StatusDeleting:
			err = waitWhile(ctx, h, &in, func(s provider.RuntimeStatus) bool { return s == provider.StatusDeleting })
		default:
			return in, nil
		}
		if err != nil {
			return in, err
		}
	}
}

// remove terminates and deletes an incarnation. It does not affect a later incarnation of the ID.
func remove(ctx context.Context, h *hub.Hub, in *provider.Instance) error {
	requester := h.Calls.Caller(ctx)
	if !in.Status.Terminal() {
		end := provider.Message{
			Kind: provider.MessageTerminate, InstanceID: in.InstanceID, StartID: in.StartID, Text: ReplacedMessage,
			RequestedBy: requester, TraceParent: hub.TraceParent(ctx),
		}
		if err := h.EnqueueForOrchestrator(ctx, end); err != nil {
			return err
		}
		if err := waitWhile(ctx, h, in, func(s provider.RuntimeStatus) bool { return !s.Terminal() }); err != nil {
			return err
		}
	}
	return h.DeleteIncarnation(provider.WithRequester(ctx, requester), in.InstanceID, in.StartID, false)
}

// waitWhile waits while an incarnation exists with a status for which while returns true.
func waitWhile(
	ctx context.Context, h *hub.Hub, in *provider.Instance, while func(provider.RuntimeStatus) bool,
) error {
	poll := func(ctx context.Context) (done bool, err error) {
		now, err := h.ReadInstance(ctx, in.InstanceID)
		if errors.Is(err, provider.ErrNotFound) {
			return true, nil
		}
		return now.StartID != in.StartID || !while(now.Status), err
	}
	if err := h.WaitUntil(ctx, in.InstanceID, poll); err != nil {
		return fmt.Errorf("wait for the end of the existing instance: %w", hub.WaitError(ctx, in.InstanceID, err))
	}
	return nil
}
