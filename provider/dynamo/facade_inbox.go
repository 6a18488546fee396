package dynamo

import (
	"context"
	"time"

	"github.com/perdure/perdure/provider"
)

// EnqueueForOrchestrator implements provider.Instances.
func (p *Provider) EnqueueForOrchestrator(ctx context.Context, ms ...provider.Message) error {
	return p.inbox.Send(ctx, ms...)
}

// DecodeOrchestrationItems implements provider.Orchestrations.
func (p *Provider) DecodeOrchestrationItems(records []provider.Record) (items []*provider.OrchestrationItem, unreadable []provider.Unreadable) {
	return p.inbox.Decode(records)
}

// ReadInterruption implements provider.Orchestrations.
func (p *Provider) ReadInterruption(ctx context.Context, instanceID string) (at time.Time, err error) {
	return p.inbox.ReadInterruption(ctx, instanceID)
}
