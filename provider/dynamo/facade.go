package dynamo

import (
	"context"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// Payloads implements provider.PayloadStoreProvider.
func (p *Provider) Payloads() provider.PayloadStore {
	if p.payloads == nil {
		return nil
	}
	return p.payloads
}

// SweepPayloads implements provider.PayloadStoreProvider.
func (p *Provider) SweepPayloads(ctx context.Context, after string) (next string, deleted int, err error) {
	return p.payloads.Sweep(ctx, after, p.executionExists)
}

// ExecutionExists reports whether an execution exists and is not deleted.
func (p *Provider) executionExists(ctx context.Context, executionID string) (bool, error) {
	start, err := p.table.GetExecutionItem(ctx, executionID, table.SegmentSK(0, 0))
	return len(start) > 0 && !table.IsStub(start), err
}
