package client

import (
	"context"
	"encoding/json"
	"fmt"
)

// StartOrUpdate sends an update to the instance with the id of WithInstanceID, which must be given, starts the instance before where there is none, and waits for
// the answer. It takes what Start and Update take, with the same errors: see StartOrRaise for which instance it starts, and for what started says.
//
// WithIdempotencyKey is the key of the start and the update's id (WithUpdateID): repeated with it, the call starts once, the update is taken once, and
// the answer is the same. An instance that is over gives the answer to an update that it has taken, and is else an ErrTerminal; one whose instance is
// purged is an ErrPurged, and one that is purged while the update is on its way an ErrNotFound. If the process dies in between, the instance is there without
// the update: repeat the call.
//
// Where ctx ends before the answer is there, the error is a *UpdateError with UpdatePending, and started says what it says: a call with the update's id, of
// Update or with it as the key, goes on waiting.
func (c *Client) StartOrUpdate(ctx context.Context, orchestration string, input any, update string, data any, opts ...StartOption) (result json.RawMessage, started bool, err error) {
	o := startOptionsOf(opts)
	s, err := c.startToTell(ctx, orchestration, input, "an update", opts)
	if err != nil {
		return nil, false, fmt.Errorf("client: start or update: %w", err)
	}
	u, err := c.newUpdate(s.InstanceID, update, data, updateOptions{id: o.idempotencyKey, input: "data"})
	if err != nil {
		return nil, false, fmt.Errorf("client: start or update: %w", err)
	}
	in, err := c.beginToTell(ctx, &s, o.ifExists)
	if err != nil {
		return nil, false, fmt.Errorf("client: start %q or update: %w", orchestration, err)
	}
	u.isFor(&in)
	result, err = u.run(ctx)
	return result, in.StartID == s.StartID, u.told(err)
}
