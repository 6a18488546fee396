package client

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/provider"
)

// PurgeOption is an option of Purge.
type PurgeOption func(*purgeOptions)

type purgeOptions struct{ force bool }

// Force purges an instance that is not over, too: it ends at once, without running its code. Its activities, timers and children
// are cancelled, and its parent is told that it was terminated.
func Force() PurgeOption { return func(o *purgeOptions) { o.force = true } }

// Purge deletes an instance that is over, with the histories of all its executions. Its id is free then for another start; a start
// that it has seen before never starts it again. Its children are instances of their own: they stay until they are purged, too.
//
// ErrNotFound when there is no such instance, ErrNotTerminal when it is not over and Force is not given. Of a long history, or when
// the call fails or ctx ends, some may be left: the instance is StatusDeleting until Purge is called again, or until the task hub
// finishes it by itself, after some minutes. Several may purge one instance at once.
//
// It writes once for each turn that the instance has had. What shuts out late messages and starts is kept for 30 days: ids, and
// the reasons and messages of cancellations, but no input or result.
func (c *Client) Purge(ctx context.Context, instanceID string, opts ...PurgeOption) error {
	var o purgeOptions
	for _, opt := range opts {
		opt(&o)
	}
	err := checkInstanceID(instanceID)
	if err == nil {
		err = c.provider.DeleteInstance(provider.WithRequester(ctx, c.caller(ctx)), instanceID, o.force)
	}
	if err != nil {
		return fmt.Errorf("client: purge: %w", err)
	}
	return nil
}
