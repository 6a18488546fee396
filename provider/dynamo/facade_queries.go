package dynamo

import (
	"context"
	"encoding/json"

	"github.com/perdure/perdure/provider"
)

// QueryInstance implements provider.Querier.
func (p *Provider) QueryInstance(ctx context.Context, q provider.QueryRequest) (json.RawMessage, error) {
	return p.queries.Query(ctx, q)
}
