package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/perdure/perdure/provider"
)

// IDConflictPolicy defines what a start does if its instance ID is in use.
type IDConflictPolicy string

// Policies of IfExists.
const (
	// UseExisting returns the ID of the existing instance and does not start a new one.
	UseExisting IDConflictPolicy = "ignore"
	// Replace terminates and purges the existing instance and starts the new one.
	Replace IDConflictPolicy = "replace"
)

// IfExists sets what a start does if the instance ID of WithInstanceID, which is required, is in use. Without IfExists,
// Start returns ErrAlreadyExists. If the existing instance is being purged, the call waits until the ID is free or ctx
// ends. IfExists is an option of Start, StartOrRaiseEvent and StartOrUpdate.
//
// UseExisting keeps the existing instance, even if it belongs to another orchestration.
//
// Replace terminates an instance that has not ended with the message ReplacedMessage, waits for its end, purges it, and
// starts the new instance. The children of the old instance stay, as with Purge. Invalid input is rejected before the
// old instance is changed. Replace requires the permissions of Terminate and Purge.
//
// Replace is not a transaction. Other callers can see the old instance as Terminated and Deleting, and for a moment no
// instance at all. They may start one with the ID at that moment. If the process dies or ctx ends, there may be no new
// instance: repeat the call. If two starts replace an instance at the same time, both succeed, and the later one
// replaces the instance of the earlier one.
//
// With WithIdempotencyKey, a repeated call is the same start. It keeps the instance that it started earlier, whether
// running or ended, and returns ErrPurged if that instance has been replaced or purged. Without a key, a repeated call
// replaces its own instance.
func IfExists(policy IDConflictPolicy) StartOption {
	return func(o *startOptions) { o.ifExists = &policy }
}

// AlreadyExistsError describes the instance that uses the ID of a start: its orchestration, status and start time.
type AlreadyExistsError = provider.AlreadyExistsError

// ReplacedMessage is the message with which Replace terminates an instance.
const ReplacedMessage = "replaced by another start of its id"

func (o *startOptions) checkIfExists() error {
	switch {
	case o.ifExists == nil:
		return nil
	case *o.ifExists != UseExisting && *o.ifExists != Replace:
		return &provider.FieldError{Field: fieldIfExists, Problem: fmt.Sprintf("must be %s or %s, is %q",
			UseExisting, Replace, provider.Excerpt(*o.ifExists))}
	case o.instanceID == nil:
		return &provider.FieldError{Field: fieldIfExists, Problem: "requires an instance ID"}
	default:
		return nil
	}
}

// onlyStarts returns an error where a call that makes a start is given what only Start, StartOrRaiseEvent and StartOrUpdate take.
func onlyStarts(opts []StartOption) error {
	if startOptionsOf(opts).ifExists != nil {
		return &provider.FieldError{Field: fieldIfExists, Problem: "requires Start, StartOrRaiseEvent or StartOrUpdate"}
	}
	return nil
}

// holders says what becomes of an instance that has the id of a start: whether it makes way.
type holders func(RuntimeStatus) (makesWay bool)

// holdersFor returns what a policy does with an instance that has the id; nil: the start is refused.
func holdersFor(p *IDConflictPolicy) holders {
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
	requester := c.calls.Caller(ctx)
	if !in.Status.Terminal() {
		end := provider.Message{
			Kind: provider.MessageTerminate, InstanceID: in.InstanceID, StartID: in.StartID, Text: ReplacedMessage, RequestedBy: requester, TraceParent: traceParentOf(ctx),
		}
		if err := c.hub.EnqueueForOrchestrator(ctx, end); err != nil {
			return err
		}
		if err := c.whileLives(ctx, in, func(s RuntimeStatus) bool { return !s.Terminal() }); err != nil {
			return err
		}
	}
	return c.hub.DeleteIncarnation(provider.WithRequester(ctx, requester), in.InstanceID, in.StartID, false)
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
		return fmt.Errorf("wait for the end of the existing instance: %w", waitError(ctx, in.InstanceID, err))
	}
	return nil
}
