package dynamo

import (
	"context"

	"github.com/perdure/perdure/provider"
)

// TerminateCorrupt implements provider.Orchestrations.
func (p *Provider) TerminateCorrupt(ctx context.Context, m *provider.InboxMessage) error {
	return p.deletion.TerminateCorrupt(ctx, m)
}

// DeleteInstance implements provider.Instances.
func (p *Provider) DeleteInstance(ctx context.Context, instanceID string, force bool) error {
	return p.deletion.DeleteInstance(ctx, instanceID, force)
}

// DeleteIncarnation implements provider.Jobs.
func (p *Provider) DeleteIncarnation(ctx context.Context, instanceID, startID string, force bool) error {
	return p.deletion.DeleteIncarnation(ctx, instanceID, startID, force)
}
