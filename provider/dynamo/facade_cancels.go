package dynamo

import (
	"context"

	"github.com/perdure/perdure/provider"
)

// ReadCancels implements provider.WorkItems.
func (p *Provider) ReadCancels(ctx context.Context, executionID string, from int64) (cancels provider.Cancels, next int64, err error) {
	return p.cancels.ReadCancels(ctx, executionID, from)
}

// PollCancels implements provider.WorkItems.
func (p *Provider) PollCancels(ctx context.Context, executionID string, from int64) (cancels provider.Cancels, next int64, err error) {
	return p.cancels.PollCancels(ctx, executionID, from)
}
