package dynamo

import (
	"context"

	"github.com/perdure/perdure/provider"
)

// AckOrchestrationItem implements provider.Orchestrations.
func (p *Provider) AckOrchestrationItem(ctx context.Context, t *provider.Turn) ([]provider.OutputFailure, error) {
	return p.outbox.Ack(ctx, t)
}

// RedispatchOrchestration implements provider.Orchestrations.
func (p *Provider) RedispatchOrchestration(ctx context.Context, o *provider.Orchestration, since provider.RedispatchFrom) ([]provider.OutputFailure, error) {
	return p.outbox.Redispatch(ctx, o, since)
}

// PutWorkItems implements provider.WorkItems.
func (p *Provider) PutWorkItems(ctx context.Context, items ...provider.WorkItem) error {
	return p.outbox.PutWorkItems(ctx, items...)
}

// RefreshStatus implements provider.Orchestrations.
func (p *Provider) RefreshStatus(ctx context.Context, wake *provider.Message) error {
	return p.outbox.RefreshStatus(ctx, wake)
}
