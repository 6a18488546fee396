package dynamo

import (
	"context"

	"github.com/perdure/perdure/provider"
)

// PutPendingAttempts implements provider.Orchestrations.
func (p *Provider) PutPendingAttempts(ctx context.Context, instanceID string, head provider.Head, keeps ...provider.PendingAttemptUpdate) error {
	return p.retries.PutPendingAttempts(ctx, instanceID, head, keeps...)
}

// RetryActivities implements provider.Orchestrations.
func (p *Provider) RetryActivities(ctx context.Context, r *provider.RetryRequest) (provider.RetryResult, error) {
	return p.retries.RetryActivities(ctx, r)
}
