package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/httpapi/internal/problem"
	"github.com/perdure/perdure/httpapi/internal/request"
)

// EntityState is the state of an entity's key.
type EntityState struct {
	Entity string `json:"entity"`
	Key    string `json:"key"`
	// InstanceID is the instance of the key.
	InstanceID string `json:"instanceId"`
	// State is the state as JSON.
	State json.RawMessage `json:"state"`
}

// entityKey returns the entity and the key of the path.
func entityKey(r *http.Request) (entity, key string, err error) {
	if entity, err = request.ID(r, problem.FieldEntity, problem.FieldEntity); err != nil {
		return "", "", err
	}
	key, err = request.ID(r, problem.FieldKey, problem.FieldKey)
	return entity, key, err
}

func (e entities) state(c *call) error {
	entity, key, err := entityKey(c.r)
	if err != nil {
		return err
	}
	state, err := e.client.EntityState(c.ctx(), entity, key)
	if err != nil {
		return problem.OfEntity.Of(err)
	}
	return c.reply(http.StatusOK, EntityState{
		Entity: entity, Key: key, InstanceID: perdure.EntityInstanceID(entity, key), State: state,
	})
}

func (e entities) call(c *call) error {
	entity, key, err := entityKey(c.r)
	if err != nil {
		return err
	}
	operation, err := request.ID(c.r, "operation", "operation")
	if err != nil {
		return err
	}
	opts, callID, err := c.updateOptions()
	if err != nil {
		return err
	}
	var input json.RawMessage
	if err := c.body(map[string]any{problem.FieldInput: &input}); err != nil {
		return err
	}
	u := UpdateResponse{InstanceID: perdure.EntityInstanceID(entity, key), Update: operation, UpdateID: callID}
	return problem.OfEntity.Of(replyUpdate(c, &u, func(ctx context.Context) (json.RawMessage, error) {
		return e.client.CallEntity(ctx, entity, key, operation, orNull(input), opts...)
	}))
}
