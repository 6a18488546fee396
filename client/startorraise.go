package client

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/client/internal/raising"
	"github.com/perdure/perdure/client/internal/starting"
)

// StartOrRaiseEvent sends an external event to an instance, and first starts the instance if it does not exist.
// WithInstanceID is required. StartOrRaiseEvent takes the arguments of Start and RaiseEvent and returns their errors.
//
// The result started is true if this call or an earlier call with the same key started the instance. Otherwise the
// instance already existed, possibly with another orchestration, and the input was not used. If the instance is being
// purged, StartOrRaiseEvent waits until the ID is free or ctx ends. If the instance has ended, StartOrRaiseEvent
// returns ErrEnded. With IfExists(Replace), it purges the ended instance and starts a new one. An instance that has not
// ended is never replaced. IfExists(UseExisting) has no effect.
//
// The start and the event are two steps. The first turn may run before the event arrives. If the process dies between
// the steps, the instance exists without the event. In this case, repeat the call.
//
// WithIdempotencyKey sets the key of the start and the ID of the event (WithEventID). A repeated call then starts the
// instance and sends the event at most once. A repeated call returns ErrEnded if the instance has ended, even if the
// instance received the event. It returns ErrPurged if the instance was purged. Without a key, a repeated call sends
// another event.
func (c *Client) StartOrRaiseEvent(
	ctx context.Context, orchestration string, input any, event string, data any, opts ...StartOption,
) (started bool, err error) {
	o := optionsOf(opts)
	s, err := starting.NewToSend(ctx, c.hub, orchestration, input, "an event", o)
	if err != nil {
		return false, fmt.Errorf("client: start or raise: %w", err)
	}
	e := raising.Event{InstanceID: s.InstanceID, Name: event, ID: o.IdempotencyKey, Data: data}
	m, err := raising.New(ctx, c.hub, "start or raise", e)
	if err != nil {
		return false, fmt.Errorf("client: %w", err)
	}

	if started, err = c.ops.StartAndRaise(ctx, &s, &o, m); err != nil {
		return started, fmt.Errorf("client: start %q or raise %q: %w", orchestration, event, err)
	}
	return started, nil
}
