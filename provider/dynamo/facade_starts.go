package dynamo

import (
	"context"

	"github.com/perdure/perdure/provider"
)

// StartOrchestration implements provider.Instances.
func (p *Provider) StartOrchestration(ctx context.Context, s provider.Start) (provider.Instance, error) {
	return p.starts.Start(ctx, s)
}

// CreateOrchestration implements provider.Orchestrations.
func (p *Provider) CreateOrchestration(ctx context.Context, m *provider.InboxMessage) (*provider.Orchestration, error) {
	return p.starts.Create(ctx, m)
}

// PrepareStart implements provider.StartPreparer.
func (p *Provider) PrepareStart(ctx context.Context, s provider.Start) (provider.PreparedStart, error) {
	return p.starts.Prepare(ctx, s)
}
