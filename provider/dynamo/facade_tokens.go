package dynamo

import (
	"context"

	"github.com/perdure/perdure/provider"
)

// VerifyWorkItemToken implements provider.WorkItems.
func (p *Provider) VerifyWorkItemToken(ctx context.Context, token string) (provider.WorkItem, error) {
	return p.tokens.VerifyWorkItemToken(ctx, token)
}

// CompletionTokens implements provider.WorkItems.
func (p *Provider) CompletionTokens(ctx context.Context) (*provider.TokenSigner, error) {
	return p.tokens.CompletionTokens(ctx)
}

// VerifyCompletionToken implements provider.WorkItems.
func (p *Provider) VerifyCompletionToken(ctx context.Context, token string) (provider.WorkItem, error) {
	return p.tokens.VerifyCompletionToken(ctx, token)
}
