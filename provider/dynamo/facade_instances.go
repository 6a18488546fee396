package dynamo

import (
	"context"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// ReadInstance implements provider.Instances.
func (p *Provider) ReadInstance(ctx context.Context, instanceID string) (provider.Instance, error) {
	return p.instances.ReadInstance(ctx, instanceID)
}

// BlockInstance implements provider.PoisonHandler.
func (p *Provider) BlockInstance(ctx context.Context, instanceID, executionID, buildID string, why *history.Failure) error {
	return p.instances.BlockInstance(ctx, instanceID, executionID, buildID, why)
}
