package client

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/client/internal/starting"
	"github.com/perdure/perdure/client/internal/updating"
)

// StartOrUpdate sends an update to an instance and waits for the result. It first starts the instance if it does not
// exist. WithInstanceID is required. StartOrUpdate takes the arguments of Start and Update and returns their errors.
// The result started and the rules for existing instances are the same as in StartOrRaiseEvent.
//
// WithIdempotencyKey sets the key of the start and the ID of the update (WithUpdateID). Repeated calls then start the
// instance and handle the update at most once, and return the same result. A repeated call returns ErrEnded if the
// instance has ended without accepting the update. It returns ErrPurged if the instance was purged. It returns
// ErrNotFound if the instance is purged before the update arrives. If the process dies before the update is sent,
// repeat the call.
//
// If ctx ends first, StartOrUpdate returns a *UpdateError with UpdatePending, and started is valid. To continue
// waiting, call Update with the update's ID or repeat the call with the key.
func (c *Client) StartOrUpdate(
	ctx context.Context, orchestration string, input any, update string, data any, opts ...StartOption,
) (result json.RawMessage, started bool, err error) {
	o := optionsOf(opts)
	s, err := starting.NewToSend(ctx, c.hub, orchestration, input, "an update", o)
	if err != nil {
		return nil, false, fmt.Errorf("client: start or update: %w", err)
	}
	u, err := updating.New(c.hub, updating.Request{
		InstanceID: s.InstanceID, Name: update, ID: o.IdempotencyKey, Input: data, InputField: "data",
	})
	if err != nil {
		return nil, false, fmt.Errorf("client: start or update: %w", err)
	}
	r, started, pending, err := c.ops.StartAndUpdate(ctx, &s, &o, u)
	result, err = c.updateResult(ctx, u, r, pending, err)
	return result, started, err
}
