package dynamo

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/starts"
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

// TransactItems returns the two writes of a start that client.PrepareStart prepared. Add them to the TransactItems of
// your TransactWriteItems call, in the hub's account and region. AWS allows 100 items and 4 MB per transaction. The
// caller requires dynamodb:PutItem on the hub's table.
//
// It returns nil for a start of another provider. A wrapper of a PreparedStart must have the method Unwrap()
// provider.PreparedStart.
func TransactItems(s provider.PreparedStart) []types.TransactWriteItem {
	return starts.TransactItems(s)
}
