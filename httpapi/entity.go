package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
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

// entityKey reads which key of which entity a path is about.
func entityKey(r *http.Request) (entity, key string, err error) {
	if entity, err = pathID(r, fieldEntity, fieldEntity); err != nil {
		return "", "", err
	}
	key, err = pathID(r, fieldKey, fieldKey)
	return entity, key, err
}

// entityState answers with the state of an entity's key.
func entityState(h *handler, w http.ResponseWriter, r *http.Request, _ url.Values) error {
	entity, key, err := entityKey(r)
	if err != nil {
		return err
	}
	state, err := h.client.EntityState(r.Context(), entity, key)
	if err != nil {
		return ofEntities.say(err)
	}
	return writeJSON(w, http.StatusOK, EntityState{
		Entity: entity, Key: key, InstanceID: perdure.EntityInstanceID(entity, key), State: state,
	})
}

// callEntity calls an operation of an entity's key, and waits for a while.
func callEntity(h *handler, w http.ResponseWriter, r *http.Request, _ url.Values) error {
	entity, key, err := entityKey(r)
	if err != nil {
		return err
	}
	operation, err := pathID(r, "operation", "operation")
	if err != nil {
		return err
	}
	callID, given, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	var opts []client.UpdateOption
	if given {
		opts = append(opts, client.WithUpdateID(callID))
	}
	var input json.RawMessage
	if err := readBody(w, r, map[string]any{fieldInput: &input}); err != nil {
		return err
	}
	if len(input) == 0 {
		input = json.RawMessage("null")
	}
	u := UpdateResponse{InstanceID: perdure.EntityInstanceID(entity, key), Update: operation, UpdateID: callID}
	return ofEntities.say(answerUpdate(h, w, r, fieldUpdate, &u, func(ctx context.Context) (json.RawMessage, error) {
		return h.client.CallEntity(ctx, entity, key, operation, input, opts...)
	}))
}
