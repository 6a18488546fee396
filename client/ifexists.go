package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/perdure/perdure/provider"
)

// ExistsPolicy says what becomes of a start whose instance id another start has taken.
type ExistsPolicy string

// The policies of IfExists.
const (
	// Ignore leaves alone what has the id, whether it runs or is over, and returns the id without an error.
	Ignore ExistsPolicy = "ignore"
	// Replace ends what has the id, deletes it, and starts the new instance.
	Replace ExistsPolicy = "replace"
)

// IfExists says what becomes of a start whose instance id, given by WithInstanceID, is in use; without it that is an ErrAlreadyExists. An id that is being
// purged is waited for until it is free, as long as ctx lasts: who purges it may have died, and then the task hub goes on with it after some minutes.
//
// With Ignore what has the id is left as it is, whatever it is: another orchestration, too.
//
// Replace is several calls, and no transaction. An instance that is not over is terminated, with the message ReplacedMessage: its code is not run again, its
// activities, timers and children are cancelled, and its parent is told. It is waited for, purged (its children stay, as with Purge), and then the new one is
// started. Meanwhile others see the old one Terminated, then Deleting, and for a moment none; they may start one of their own. If the process dies, or ctx
// ends, in the middle, the id may be left with the old instance terminated or deleted, and no new one: repeat the call. A start that is refused for its name,
// input or options has ended nothing. Where two starts replace one instance, both succeed, one after the other, and the later one has replaced the
// earlier one's.
//
// With WithIdempotencyKey a repeated call is the same start: it leaves alone the instance that it has begun, running or over, and where that has been
// replaced or purged since it is an ErrPurged that has changed nothing. Without a key, a repeated call replaces what it has started itself.
//
// It is an option of Start, StartOrRaise and StartOrUpdate. For Replace a program needs the rights of Terminate and Purge, too.
func IfExists(policy ExistsPolicy) StartOption { return func(o *startOptions) { o.ifExists = &policy } }

// AlreadyExistsError says which instance has the id of a start: its orchestration, status and time of start. The start
// has made no call for it.
type AlreadyExistsError = provider.AlreadyExistsError

// ReplacedMessage is the message with which Replace terminates an instance.
const ReplacedMessage = "replaced by another start of its id"

func (o *startOptions) checkIfExists() error {
	switch {
	case o.ifExists == nil:
		return nil
	case *o.ifExists != Ignore && *o.ifExists != Replace:
		return &provider.FieldError{Field: fieldIfExists, Problem: fmt.Sprintf("%q is neither %s nor %s", provider.Echo(*o.ifExists), Ignore, Replace)}
	case o.instanceID == nil:
		return &provider.FieldError{Field: fieldIfExists, Problem: "needs an instance id: without one no other start can have it"}
	default:
		return nil
	}
}

// onlyStarts returns an error where a call that makes a start is given what only Start, StartOrRaise and StartOrUpdate take.
func onlyStarts(opts []StartOption) error {
	if startOptionsOf(opts).ifExists != nil {
		return &provider.FieldError{Field: fieldIfExists, Problem: "is for a start"}
	}
	return nil
}

// holders says what becomes of an instance that has the id of a start: whether it makes way.
type holders func(RuntimeStatus) (makesWay bool)

// holdersFor returns what a policy does with an instance that has the id; nil: the start is refused.
func holdersFor(p *ExistsPolicy) holders {
	if p == nil {
		return nil
	}
	replace := *p == Replace
	return func(RuntimeStatus) bool { return replace }
}

// begin makes a start. Where its id is in use, what has it makes way or is returned: found is then of another start. Without holders that is an error.
func (c *Client) begin(ctx context.Context, s *provider.Start, h holders) (found provider.Instance, err error) {
	found, err = c.beginAmong(ctx, s, h)
	refused := err
	if err == nil && found.StartID != s.StartID {
		refused = ErrAlreadyExists
	}
	c.forgetInput(ctx, s, &found, refused)
	return found, err
}

func (c *Client) beginAmong(ctx context.Context, s *provider.Start, h holders) (found provider.Instance, err error) {
	for {
		found, err = c.hub.StartOrchestration(ctx, *s)
		if h == nil || !errors.Is(err, ErrAlreadyExists) || errors.Is(err, ErrPurged) {
			return found, err
		}
		if err = nil; found.StartID == "" {
			found, err = c.hub.ReadInstance(ctx, s.InstanceID)
		}
		switch {
		case errors.Is(err, ErrNotFound): // it was purged meanwhile
			err = nil
		case err != nil:
		case h(found.Status):
			err = c.makeWay(ctx, &found)
		case found.Status == StatusDeleting:
			err = c.whileLives(ctx, &found, func(s RuntimeStatus) bool { return s == StatusDeleting })
		default:
			return found, nil
		}
		if err != nil {
			return found, err
		}
	}
}

// makeWay ends the life of an id that was read, and deletes it. Another life, which may have begun meanwhile, is left alone.
func (c *Client) makeWay(ctx context.Context, in *provider.Instance) error {
	requester := c.caller(ctx)
	if !in.Status.Terminal() {
		end := provider.Message{
			Kind: provider.MessageTerminate, InstanceID: in.InstanceID, StartID: in.StartID, Text: ReplacedMessage, RequestedBy: requester, TraceParent: traceOf(ctx),
		}
		if err := c.hub.EnqueueForOrchestrator(ctx, end); err != nil {
			return err
		}
		if err := c.whileLives(ctx, in, func(s RuntimeStatus) bool { return !s.Terminal() }); err != nil {
			return err
		}
	}
	return c.hub.DeleteLife(provider.WithRequester(ctx, requester), in.InstanceID, in.StartID, false)
}

// whileLives waits while the life of an id that was read is there with such a status. It does not wait for the next life.
func (c *Client) whileLives(ctx context.Context, in *provider.Instance, such func(RuntimeStatus) bool) error {
	look := func(ctx context.Context) (done bool, err error) {
		now, err := c.hub.ReadInstance(ctx, in.InstanceID)
		if errors.Is(err, ErrNotFound) {
			return true, nil
		}
		return now.StartID != in.StartID || !such(now.Status), err
	}
	if err := c.lookWaiting(ctx, in.InstanceID, look); err != nil {
		return fmt.Errorf("while it waits until the instance with that id is gone: %w", waitError(ctx, in.InstanceID, err))
	}
	return nil
}
