package client

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/internal/clientcall"
	"github.com/perdure/perdure/provider"
)

// StartOrRaiseEvent raises an external event in the instance with the ID of WithInstanceID, which is required, and
// first starts the instance if it does not exist. It takes the arguments of Start and RaiseEvent and returns their
// errors.
//
// The result started reports whether this call, or an earlier one with the same key, started the instance. If it is
// false, the instance existed already, possibly of another orchestration, and the input was not used. If the instance
// is being purged, StartOrRaiseEvent waits until the ID is free or ctx ends. If the instance has ended,
// StartOrRaiseEvent returns ErrEnded. With IfExists(Replace), it purges the ended instance and starts a new one. An
// instance that has not ended is never replaced. IfExists(UseExisting) has no effect.
//
// The start and the event are two steps. The first turn may run before the event arrives. If the process dies between
// them, the instance exists without the event: repeat the call.
//
// WithIdempotencyKey sets the key of the start and the ID of the event (WithEventID), so that a repeated call starts
// the instance and raises the event at most once. A repetition returns ErrEnded if the instance has ended, even if it
// received the event, and ErrPurged if it was purged. Without a key, a repeated call raises another event.
func (c *Client) StartOrRaiseEvent(ctx context.Context, orchestration string, input any, event string, data any, opts ...StartOption) (started bool, err error) {
	o := startOptionsOf(opts)
	s, err := c.startToTell(ctx, orchestration, input, "an event", opts)
	if err != nil {
		return false, fmt.Errorf("client: start or raise: %w", err)
	}
	m, err := c.newEvent(ctx, s.InstanceID, event, data, o.idempotencyKey)
	if err != nil {
		return false, fmt.Errorf("client: start or raise%w", err)
	}

	in, err := c.beginToTell(ctx, &s, o.ifExists)
	if err != nil {
		return false, fmt.Errorf("client: start %q or raise: %w", orchestration, err)
	}

	started = in.StartID == s.StartID
	err = c.call(ctx, clientcall.Raise, s.InstanceID, event, func(ctx context.Context) error {
		return c.tellLife(ctx, &in, m)
	})
	if err != nil {
		return started, fmt.Errorf("client: raise %q: %w", event, err)
	}
	return started, nil
}

// startToTell returns the start of an instance that is to be told something, what, when it is there. The idempotency key is the id of that, too.
func (c *Client) startToTell(ctx context.Context, orchestration string, input any, what string, opts []StartOption) (s provider.Start, err error) {
	o := startOptionsOf(opts)
	if o.instanceID == nil {
		return s, &provider.FieldError{Field: "instanceId", Problem: "is required to send " + what}
	}
	if k := o.idempotencyKey; k != nil {
		err = provider.CheckText("idempotencyKey", *k, 1, MaxEventIDBytes)
	}
	if err == nil {
		s, err = c.startOf(ctx, orchestration, input, opts)
	}
	s.CheckFirst = true // as a rule the instance is there
	return s, err
}

// beginToTell makes the start of an instance that is to be told something, and returns that which is there: with Replace, what is over makes way.
func (c *Client) beginToTell(ctx context.Context, s *provider.Start, p *IDConflictPolicy) (in provider.Instance, err error) {
	replace := p != nil && *p == Replace
	err = c.call(ctx, clientcall.Start, s.InstanceID, s.Name, func(ctx context.Context) (err error) {
		s.TraceParent = traceParentOf(ctx)
		in, err = c.begin(ctx, s, func(s RuntimeStatus) bool { return replace && s.Terminal() })
		return err
	})
	return in, err
}

// tellLife sends a message to the life of an id that was read, unless it is over.
func (c *Client) tellLife(ctx context.Context, in *provider.Instance, m provider.Message) error {
	if in.Status.Terminal() {
		return fmt.Errorf("instance %q is %s: %w", m.InstanceID, in.Status, ErrEnded)
	}
	m.StartID = in.StartID
	m.TraceParent = traceParentOf(ctx)
	return c.hub.EnqueueForOrchestrator(ctx, m)
}
