package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi/internal/problem"
)

// longestUpdate is less than the 30 seconds after which API Gateway ends a call.
const longestUpdate = 25 * time.Second

// UpdateResponse is the response to an update.
type UpdateResponse struct {
	InstanceID string `json:"instanceId"`
	Update     string `json:"update"`
	// UpdateID is the update's ID. Repeat the call with it as the Idempotency-Key to continue waiting. It is empty if
	// the update is completed and the caller gave no ID.
	UpdateID string `json:"updateId,omitempty"`
	// Result is the handler's result. It is nil if the update is not completed.
	Result json.RawMessage `json:"result,omitempty"`
	// EncodedResult describes a result that is not returned.
	EncodedResult *client.EncodedPayload `json:"resultSealed,omitempty"`
	// Status is the last known status of the instance if the update is not completed.
	Status client.RuntimeStatus `json:"status,omitempty"`
	// Started and Links are set for a PUT that sends the update, like in StartResponse. Otherwise they are nil.
	Started *bool  `json:"started,omitempty"`
	Links   *Links `json:"links,omitempty"`
}

// NewPendingUpdateResponse returns the response to a PUT that sends an update, before the update is completed.
func NewPendingUpdateResponse(instanceID, update, updateID string, started bool) UpdateResponse {
	links := NewStartResponse(instanceID).Links
	return UpdateResponse{InstanceID: instanceID, Update: update, UpdateID: updateID, Started: &started, Links: &links}
}

// update sends an update and waits for the result.
func (i instances) update(c *call) error {
	id, err := c.instanceID()
	if err != nil {
		return err
	}
	opts, key, err := c.updateOptions()
	if err != nil {
		return err
	}
	var update string
	var input json.RawMessage
	if err := c.body(map[string]any{problem.FieldUpdate: &update, problem.FieldInput: &input}); err != nil {
		return err
	}
	u := UpdateResponse{InstanceID: id, Update: update, UpdateID: key}
	return replyUpdate(c, &u, func(ctx context.Context) (json.RawMessage, error) {
		return i.client.Update(ctx, id, update, orNull(input), opts...)
	})
}

// replyUpdate runs an update and responds with the result, or with 202 if the update takes too long.
func replyUpdate(c *call, u *UpdateResponse, run func(ctx context.Context) (json.RawMessage, error)) error {
	ctx, stop := context.WithTimeout(c.ctx(), longestUpdate)
	defer stop()
	result, err := run(ctx)
	e, sent := errors.AsType[*client.UpdateError](err)
	if err == nil || sent {
		c.audit(u.InstanceID, "")
	}
	switch {
	case sent && e.Code == client.UpdatePending && c.ctx().Err() == nil:
		c.w.Header().Set("Retry-After", "1")
		u.UpdateID, u.Status = e.UpdateID, e.Status
		return c.reply(http.StatusAccepted, u)
	case sent && e.Code == client.UpdateResultEncoded:
		u.EncodedResult = e.EncodedResult
	case err != nil:
		return err
	case len(result) > shownOutput:
		u.EncodedResult = &client.EncodedPayload{Bytes: int64(len(result))}
	default:
		u.Result = result
	}
	return c.reply(http.StatusOK, u)
}
