package dynamo

import (
	"context"
	"errors"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// DeleteIncarnation deletes the incarnation that a start created. If it has ended and is small, a single transaction
// deletes it.
func (p *Provider) DeleteIncarnation(ctx context.Context, instanceID, startID string, force bool) error {
	it, err := p.instances.Get(ctx, instanceID, provider.Strong)
	switch {
	case errors.Is(err, provider.ErrNotFound):
		return nil
	case err != nil:
		return err
	case table.GetString(it, table.AttrStartID) == startID && !instances.IsDeleting(it) && provider.RuntimeStatus(table.GetString(it, table.AttrStatus)).Terminal():
		return p.deleteOver(ctx, it)
	}
	return unlessNone(p.deleteLife(ctx, instanceID, startID, force))
}
