package dynamo

import (
	"context"

	"github.com/perdure/perdure/provider"
)

// PutUpdateResults implements provider.Orchestrations.
func (p *Provider) PutUpdateResults(ctx context.Context, answers ...provider.UpdateResult) error {
	return p.updates.Put(ctx, answers...)
}

// ReadUpdate implements provider.Instances.
func (p *Provider) ReadUpdate(ctx context.Context, instanceID, updateID string) (provider.UpdateResult, error) {
	return p.updates.Read(ctx, instanceID, updateID)
}
