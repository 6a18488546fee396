package client

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/provider"
)

// StartOrRaise raises an external event in the instance with the id of WithInstanceID, which must be given, and starts the instance before where there is
// none: whoever has something to say need not know whether anybody listens yet. It takes what Start and Raise take, with the same errors.
//
// Started says that the instance is the one of this start, and is true again when the call is repeated with the same key; false: the instance was there,
// whatever its orchestration, and the input is not used. An instance that is being purged is waited for, as long as ctx lasts, and then there is none.
// Where the instance is over it returns ErrTerminal, as Raise does, and with IfExists(Replace) it purges that and starts anew; what is not over is never
// replaced. IfExists(Ignore) says nothing else than no option.
//
// It starts, and then raises, so the orchestration may have run its first turn when the event comes: it waits for events as any other. An instance that
// ends while the event is on its way does not receive it, as with Raise. If the process dies in between, the instance is there without the event: repeat
// the call.
//
// WithIdempotencyKey is the key of the start and the event's id (WithEventID): repeated with it, the call starts once, and the instance receives the event
// once. A repetition that finds its instance over is an ErrTerminal, though that may have had the event, and one whose instance is purged an ErrPurged; with
// IfExists(Replace) a repetition starts anew where the instance that was raised in, which another has started, is over meanwhile. Without a key a repetition is
// another event.
func (c *Client) StartOrRaise(ctx context.Context, orchestration string, input any, event string, data any, opts ...StartOption) (started bool, err error) {
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
	err = c.call(ctx, callRaise, s.InstanceID, event, func(ctx context.Context) error {
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
		return s, &provider.FieldError{Field: "instanceId", Problem: "is missing: " + what + " is for an instance that somebody may have started"}
	}
	if k := o.idempotencyKey; k != nil {
		err = checkText("idempotencyKey", *k, 1, MaxEventIDBytes)
	}
	if err == nil {
		s, err = c.startOf(ctx, orchestration, input, opts)
	}
	s.Look = true // as a rule the instance is there
	return s, err
}

// beginToTell makes the start of an instance that is to be told something, and returns that which is there: with Replace, what is over makes way.
func (c *Client) beginToTell(ctx context.Context, s *provider.Start, p *ExistsPolicy) (in provider.Instance, err error) {
	replace := p != nil && *p == Replace
	err = c.call(ctx, callStart, s.InstanceID, s.Name, func(ctx context.Context) (err error) {
		s.TraceParent = traceOf(ctx)
		in, err = c.begin(ctx, s, func(s RuntimeStatus) bool { return replace && s.Terminal() })
		return err
	})
	return in, err
}

// tellLife sends a message to the life of an id that was read, unless it is over.
func (c *Client) tellLife(ctx context.Context, in *provider.Instance, m provider.Message) error {
	if in.Status.Terminal() {
		return fmt.Errorf("instance %q is %s: %w", m.InstanceID, in.Status, ErrTerminal)
	}
	m.StartID = in.StartID
	m.TraceParent = traceOf(ctx)
	return c.hub.EnqueueForOrchestrator(ctx, m)
}
