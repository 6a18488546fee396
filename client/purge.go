package client

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/clientcall"
	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/provider"
)

// PurgeOption is an option of Purge.
type PurgeOption func(*purgeOptions)

type purgeOptions struct {
	force    bool
	children bool
	life     *time.Time
}

// Force also purges an instance that has not ended. The instance ends immediately, without running its code. Its
// activities, timers and children are cancelled, and its parent receives a failure of type history.TypeTerminated.
func Force() PurgeOption { return func(o *purgeOptions) { o.force = true } }

// IfCreatedAt purges the instance only if it was created at this time (Status.CreatedAt), and not a later incarnation of
// its ID. Otherwise Purge returns ErrNotFound.
func IfCreatedAt(t time.Time) PurgeOption { return func(o *purgeOptions) { o.life = &t } }

// Purge deletes an instance that has ended, with the histories of all its executions. Its ID can then be used again,
// but not by a repetition of the start that created the instance. Children are separate instances and stay, unless
// WithChildren is given.
//
// Purge returns ErrNotFound if the instance does not exist, and ErrNotEnded if it has not ended and Force is not
// given. If the call fails or ctx ends, the instance remains with StatusDeleting until Purge is called again or the hub
// completes the deletion, within minutes. Concurrent purges of an instance are safe.
//
// Purge writes once per turn of the instance. For 30 days the hub keeps the IDs and the reasons and messages of
// cancellations, to reject late messages and starts. It keeps no inputs or results.
func (c *Client) Purge(ctx context.Context, instanceID string, opts ...PurgeOption) error {
	var o purgeOptions
	for _, opt := range opts {
		opt(&o)
	}
	err := inputcheck.InstanceID(instanceID)
	if err == nil {
		requester := c.calls.Caller(ctx)
		err = c.call(ctx, clientcall.Purge, instanceID, "", func(ctx context.Context) error {
			return c.purge(provider.WithRequester(ctx, requester), instanceID, o)
		})
	}
	if err != nil {
		return fmt.Errorf("client: purge: %w", err)
	}
	return nil
}

func (c *Client) purge(ctx context.Context, instanceID string, o purgeOptions) error {
	if o.force && o.children {
		return errForcedFamily
	}
	if o.life == nil && !o.children {
		return c.hub.DeleteInstance(ctx, instanceID, o.force)
	}
	in, err := c.hub.ReadInstance(ctx, instanceID)
	if err == nil && o.life != nil && !in.CreatedAt.Equal(*o.life) {
		err = fmt.Errorf("instance %q was created at %s, not at %s: %w",
			instanceID, in.CreatedAt.Format(time.RFC3339Nano), o.life.Format(time.RFC3339Nano), ErrNotFound)
	}
	if err != nil {
		return err
	}
	if o.children {
		return c.purgeFamily(ctx, &in)
	}
	return c.hub.DeleteIncarnation(ctx, instanceID, in.StartID, o.force) // an id that begins another life meanwhile is left alone
}
