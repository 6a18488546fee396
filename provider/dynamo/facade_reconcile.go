package dynamo

import (
	"context"

	"github.com/perdure/perdure/provider"
)

// PurgeQueues implements provider.Reconciler.
func (p *Provider) PurgeQueues(ctx context.Context, progress func(provider.QueuePurgeResult)) (provider.QueuePurgeResult, error) {
	return p.reconcile.PurgeQueues(ctx, progress)
}

// ReconcileInstance implements provider.Reconciler.
func (p *Provider) ReconcileInstance(ctx context.Context, instanceID string, r provider.ReconcileOptions) (out provider.ReconcileResult, err error) {
	return p.reconcile.Reconcile(ctx, instanceID, r)
}
