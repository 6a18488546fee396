package dynamo

import (
	"context"

	"github.com/perdure/perdure/provider"
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
	return p.payloads.Sweep(ctx, after, p.segments.Exists)
}

// PutBuild implements provider.Instances.
func (p *Provider) PutBuild(ctx context.Context, b provider.Build) error {
	return p.builds.PutBuild(ctx, b)
}

// ReadBuild implements provider.Instances.
func (p *Provider) ReadBuild(ctx context.Context, id string) (provider.Build, error) {
	return p.builds.ReadBuild(ctx, id)
}

// LatestBuild reads the build that reported last, which is the deployed one. It returns provider.ErrNotFound if no
// build has reported.
func (p *Provider) LatestBuild(ctx context.Context) (provider.Build, error) {
	return p.builds.LatestBuild(ctx)
}
