package dynamo

import (
	"context"

	"github.com/perdure/perdure/provider"
)

// ReadRejectedEvents implements provider.Orchestrations.
func (p *Provider) ReadRejectedEvents(ctx context.Context, instanceID string) (provider.RejectedEvents, error) {
	return p.rejections.ReadRejectedEvents(ctx, instanceID)
}

// RejectEvents implements provider.Orchestrations.
func (p *Provider) RejectEvents(ctx context.Context, over string, ms ...*provider.InboxMessage) error {
	return p.rejections.RejectEvents(ctx, over, ms...)
}

// RejectStart implements provider.Orchestrations.
func (p *Provider) RejectStart(ctx context.Context, m *provider.InboxMessage) error {
	return p.rejections.RejectStart(ctx, m)
}

// RejectCancel implements provider.Orchestrations.
func (p *Provider) RejectCancel(ctx context.Context, m *provider.InboxMessage) error {
	return p.rejections.RejectCancel(ctx, m)
}
