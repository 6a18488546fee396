package client

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/client/internal/raising"
	"github.com/perdure/perdure/internal/clientcall"
	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/provider"
)

// Limits of an external event, and of the message of a cancel, terminate, pause or resume, in bytes.
const (
	MaxEventNameBytes = provider.MaxEventNameBytes
	MaxEventIDBytes   = provider.MaxEventIDBytes
	MaxEventDataBytes = MaxInputBytes
	MaxMessageBytes   = inputcheck.MaxMessageBytes
)

// RaiseOption is an option of RaiseEvent.
type RaiseOption func(*raiseOptions)

type raiseOptions struct{ eventID *string }

// WithEventID sets the ID of an event. Events with the same ID are one event, even from different callers, and the
// instance receives it once. The ID has 1 to 256 bytes of UTF-8 without control characters. Without an ID, each call of
// RaiseEvent sends a separate event.
func WithEventID(id string) RaiseOption { return func(o *raiseOptions) { o.eventID = &id } }

// RaiseEvent sends an external event to an instance. The event is stored until the orchestration waits for an event of
// that name. The data is encoded as JSON; a json.RawMessage is used as is.
//
// RaiseEvent returns ErrNotFound if the instance does not exist and ErrEnded if it has ended. An instance that ends
// before the event arrives does not receive it. After a retryable error, repeat the call with the same event ID.
func (c *Client) RaiseEvent(ctx context.Context, instanceID, event string, data any, opts ...RaiseOption) error {
	o := optionsOf(opts)
	e := raising.Event{InstanceID: instanceID, Name: event, ID: o.eventID, Data: data}
	m, err := raising.New(ctx, c.hub, "raise", e)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	if _, err := c.ops.Send(ctx, clientcall.Raise, m); err != nil {
		return fmt.Errorf("client: raise %q: %w", event, err)
	}
	return nil
}

// Terminate ends an instance immediately, without running its code and without compensation. Use Cancel to let the code
// clean up. The instance's activities, timers and children are cancelled. The message is the reason, at most 1 KiB.
//
// Terminate returns ErrNotFound if the instance does not exist and ErrEnded if it has ended. Repeating the call has
// no effect.
func (c *Client) Terminate(ctx context.Context, instanceID, message string) error {
	if err := inputcheck.Message(message); err != nil {
		return fmt.Errorf("client: terminate: %w", err)
	}
	m := provider.Message{
		Kind: provider.MessageTerminate, InstanceID: instanceID, Text: message, RequestedBy: c.hub.Calls.Caller(ctx),
	}
	_, err := c.ops.Send(ctx, clientcall.Terminate, m)
	return wrap("terminate", err)
}
