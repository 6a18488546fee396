package dynamo

import (
	"context"

	"github.com/perdure/perdure/provider"
)

// ApplyRetention implements provider.Retentions.
func (p *Provider) ApplyRetention(ctx context.Context, instanceID string) (provider.RetentionResult, error) {
	return p.retention.ApplyRetention(ctx, instanceID)
}
