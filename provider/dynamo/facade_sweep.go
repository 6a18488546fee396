package dynamo

import (
	"context"
	"iter"
	"time"

	"github.com/perdure/perdure/provider"
)

// BlockedInstances implements provider.Timers.
func (p *Provider) BlockedInstances(ctx context.Context) iter.Seq2[[]provider.Instance, error] {
	return p.sweep.BlockedInstances(ctx)
}

// DeletingInstances implements provider.Timers.
func (p *Provider) DeletingInstances(ctx context.Context) iter.Seq2[[]provider.Instance, error] {
	return p.sweep.DeletingInstances(ctx)
}

// CountAttention implements provider.Timers.
func (p *Provider) CountAttention(ctx context.Context) (a provider.AttentionCounts, err error) {
	return p.sweep.CountAttention(ctx)
}

// DueInstances implements provider.Retentions.
func (p *Provider) DueInstances(ctx context.Context) iter.Seq2[string, error] {
	return p.sweep.DueInstances(ctx)
}

// PendingInstances implements provider.Timers.
func (p *Provider) PendingInstances(ctx context.Context, startedBefore time.Time) iter.Seq2[[]provider.Instance, error] {
	return p.sweep.PendingInstances(ctx, startedBefore)
}
