package client

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure/provider"
)

// PurgeOption is an option of Purge.
type PurgeOption func(*purgeOptions)

type purgeOptions struct {
	force    bool
	children bool
	life     *time.Time
}

// Force purges an instance that is not over too: it ends at once, without running its code. Its activities, timers and
// children are cancelled, and its parent receives the outcome that it was terminated.
func Force() PurgeOption { return func(o *purgeOptions) { o.force = true } }

// CreatedAt purges the instance only if it is the one that began then, as its Status says: an id may have another life since.
// For an instance that began at another time Purge returns ErrNotFound.
func CreatedAt(t time.Time) PurgeOption { return func(o *purgeOptions) { o.life = &t } }

// Purge deletes an instance that is over, with the histories of all its executions. Another start may then use its id;
// a start that has created it before never does so again. Its children are instances of their own: they stay until they
// are purged themselves, or along with it (WithChildren).
//
// It returns ErrNotFound when there is no such instance, and ErrNotTerminal when it is not over and Force is not set.
// With a long history, or when the call fails or ctx ends, parts may be left: the instance is StatusDeleting until
// Purge is called again, or until the task hub finishes the deletion by itself, after some minutes. Concurrent purges
// of one instance are safe.
//
// It writes once for each turn that the instance has had. What rejects late messages and starts is kept for 30 days:
// ids, and the reasons and messages of cancellations, but no input or result.
func (c *Client) Purge(ctx context.Context, instanceID string, opts ...PurgeOption) error {
	var o purgeOptions
	for _, opt := range opts {
		opt(&o)
	}
	err := checkInstanceID(instanceID)
	if err == nil {
		requester := c.caller(ctx)
		err = c.call(ctx, callPurge, instanceID, "", func(ctx context.Context) error {
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
		err = fmt.Errorf("instance %q began at %s, and not at %s: %w", instanceID, in.CreatedAt.Format(time.RFC3339Nano), o.life.Format(time.RFC3339Nano), ErrNotFound)
	}
	if err != nil {
		return err
	}
	if o.children {
		return c.purgeFamily(ctx, &in)
	}
	return c.hub.DeleteLife(ctx, instanceID, in.StartID, o.force) // an id that begins another life meanwhile is left alone
}
