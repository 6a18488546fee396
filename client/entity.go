package client

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client/internal/querying"
	"github.com/perdure/perdure/internal/entities"
	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/provider"
)

// CallEntity runs an operation of the entity with a key (perdure.AddEntity) and returns its result as JSON. The first
// call of a key creates the entity.
//
// The operation is an update of the instance perdure.EntityInstanceID. See Update for the wait and the errors. Use
// WithUpdateID to repeat a call safely. ErrEnded means that the entity was cancelled or terminated. Such an entity
// accepts no calls until it is purged.
func (c *Client) CallEntity(
	ctx context.Context, entity, key, operation string, input any, opts ...UpdateOption,
) (json.RawMessage, error) {
	o := optionsOf(opts)
	u, err := c.newUpdate(perdure.EntityInstanceID(entity, key), operation, input, o)
	if err == nil {
		err = checkEntity(entity, key)
	}
	if err != nil {
		return nil, fmt.Errorf("client: call entity %q: %w", entity, err)
	}
	r, pending, err := c.ops.CallEntity(ctx, entity, key, u)
	return c.updateResult(ctx, u, r, pending, err)
}

// checkEntity checks the name and the key of an entity.
func checkEntity(entity, key string) error {
	if err := inputcheck.Text("entity", entity, 1, MaxOrchestrationBytes-1); err != nil {
		return err
	}
	if entities.HasKey(entity) {
		return &provider.FieldError{Field: "entity", Problem: fmt.Sprintf("must not contain %s, is %q",
			entities.Mark, provider.Excerpt(entity))}
	}
	return inputcheck.Text("key", key, 1, MaxInstanceIDBytes)
}

// EntityState returns the state of the entity with a key after its last operation, as JSON. The entity may have been
// cancelled or terminated. EntityState is a query and returns the errors of Query. It returns ErrNotFound if the key
// has no state because no operation has run or the state was deleted.
func (c *Client) EntityState(ctx context.Context, entity, key string) (json.RawMessage, error) {
	if err := checkEntity(entity, key); err != nil {
		return nil, fmt.Errorf("client: entity state of %q: %w", entity, err)
	}
	state, err := querying.Run(ctx, c.querier, querying.Query{
		InstanceID: perdure.EntityInstanceID(entity, key), Name: perdure.EntityStateQuery,
	})
	if err != nil {
		return nil, fmt.Errorf("client: entity state of %q: %w", entity, err)
	}
	if string(state) == "null" {
		return nil, fmt.Errorf("client: entity state of %q: no state for key %q: %w", entity, key, ErrNotFound)
	}
	return state, nil
}
