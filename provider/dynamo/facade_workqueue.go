package dynamo

import (
	"context"
	"time"

	"github.com/perdure/perdure/provider"
)

// RenewWorkItemLocks implements provider.WorkItems.
func (p *Provider) RenewWorkItemLocks(ctx context.Context, queue string, lock time.Duration, items ...provider.LockedWorkItem) ([]provider.Renewal, error) {
	return p.workQueues.RenewLocks(ctx, queue, lock, items...)
}

// DecodeWorkItems implements provider.WorkItems.
func (p *Provider) DecodeWorkItems(ctx context.Context, records []provider.Record) (items []provider.LockedWorkItem, unreadable []provider.Unreadable) {
	return p.workQueues.Decode(ctx, records)
}

// AckWorkItems implements provider.WorkItems.
func (p *Provider) AckWorkItems(ctx context.Context, queue string, done []provider.CompletedWorkItem) ([]provider.Record, error) {
	return p.workQueues.Complete(ctx, queue, done)
}
