package dynamo

import (
	"context"

	"github.com/perdure/perdure/provider"
)

// MatchInstances implements provider.Jobs.
func (p *Provider) MatchInstances(ctx context.Context, f provider.Filter, from string, most int) (found []provider.Target, next string, err error) {
	return p.lists.MatchInstances(ctx, f, from, most)
}

// ListInstances implements provider.Instances.
func (p *Provider) ListInstances(ctx context.Context, q provider.ListQuery) (provider.Page, error) {
	return p.lists.ListInstances(ctx, q)
}
