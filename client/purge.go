package client

import (
	"context"
	"time"

	"github.com/perdure/perdure/client/internal/purging"
	"github.com/perdure/perdure/internal/clientcall"
	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/provider"
)

// PurgeOption is an option of Purge.
type PurgeOption func(*purgeOptions)

type purgeOptions = purging.Options

// Force also purges an instance that has not ended. The instance ends immediately, without running its code. Its
// activities, timers and children are cancelled, and its parent receives a failure of type history.TypeTerminated.
func Force() PurgeOption { return func(o *purgeOptions) { o.Force = true } }

// IfCreatedAt purges the instance only if it was created at this time (Status.CreatedAt), and not a later incarnation
// of its ID. Otherwise Purge returns ErrNotFound.
func IfCreatedAt(t time.Time) PurgeOption { return func(o *purgeOptions) { o.CreatedAt = &t } }

// WithChildren also purges the sub-orchestrations of an instance that have ended, and their sub-orchestrations.
// Detached orchestrations are not purged. A child that has not ended is not purged, and neither are its descendants.
//
// Children are purged before the instance, so that a repeated call finds the remaining children after a failure or the
// end of ctx. Purge finds the children in the histories of the instance's executions. Children of executions that
// retention has deleted are therefore not purged. The same applies to the children of an instance whose purge has
// already started. If a history cannot be read, the error is provider.ErrCorrupt. In this case, purge the instance
// without WithChildren.
//
// WithChildren also reads each history and each child with strongly consistent reads, up to 16 concurrently. An HTTP
// call is limited to half a minute, so tens of thousands of children need several calls.
//
// WithChildren requires an instance that has ended and cannot be combined with Force. Terminate a running instance
// first and wait for its children.
func WithChildren() PurgeOption { return func(o *purgeOptions) { o.Children = true } }

// Purge deletes an instance that has ended, with the histories of all its executions. Its ID can then be used again,
// but not by a repeated call of the start that created the instance. Children are separate instances and are not
// purged, unless WithChildren is given.
//
// Purge returns ErrNotFound if the instance does not exist, and ErrNotEnded if it has not ended and Force is not
// given. If the call fails or ctx ends, the instance remains with StatusDeleting until Purge is called again or the hub
// completes the deletion, within minutes. Concurrent purges of an instance are safe.
//
// Purge makes one write for each turn of the instance. To reject late messages and starts, the hub stores the IDs, and
// the reasons and messages of cancellations, for 30 days. It does not store inputs or results.
func (c *Client) Purge(ctx context.Context, instanceID string, opts ...PurgeOption) error {
	o := optionsOf(opts)
	err := inputcheck.InstanceID(instanceID)
	if err == nil {
		requester := c.hub.Calls.Caller(ctx)
		err = c.hub.Call(ctx, clientcall.Purge, instanceID, "", func(ctx context.Context) error {
			return c.ops.Purge(provider.WithRequester(ctx, requester), instanceID, o)
		})
	}
	return wrap("purge", err)
}
