package client

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// restarted is what the id of a restarted instance ends with.
var restarted = regexp.MustCompile(`\.restart-[0-9a-f]{8}$`)

// Restart starts the orchestration of an instance that is over once more, and returns the id of the new instance. It begins with what the last
// execution began with: the input (of one that has continued as new, that of the last time), the version that was asked for, and the tags.
// Options say otherwise. The instance that is over stays as it is, with its history; its parent is not told of the new one, and external events
// that an execution carried over are not among what it begins with.
//
// Repeating it is safe: one end is restarted once. The new id is that of the instance and the end's digest, such as "order-7.restart-3f9c2a1b"; to
// restart it again, restart the new one, or give another id with WithInstanceID and a key with WithIdempotencyKey.
//
// With FromEvent it begins with what the last execution had been through up to some event, instead of at the beginning.
//
// It returns ErrNotFound when there is no such instance, or when it is being purged; ErrNotTerminal when it is not over; and the errors of Start.
func (c *Client) Restart(ctx context.Context, instanceID string, opts ...StartOption) (newID string, err error) {
	if err := onlyStarts(opts); err != nil {
		return "", fmt.Errorf("client: restart: %w", err)
	}
	in, first, err := c.ended(ctx, instanceID)
	if err != nil {
		return "", fmt.Errorf("client: restart: %w", err)
	}
	if from := startOptionsOf(opts).from; from != nil {
		return c.restartFrom(ctx, in, *from, opts)
	}
	if _, ok := first.Input.Document(); !ok && !first.Input.IsSealed() {
		return "", fmt.Errorf("client: restart: instance %q: its input is not in its history", instanceID)
	}

	key := digest("restart", instanceID, in.StartID, in.ExecutionID)
	as := []StartOption{WithInstanceID(restartID(instanceID, key)), WithIdempotencyKey(key), WithVersion(first.Version), WithTags(first.Tags)}
	newID, err = c.Start(ctx, first.Name, began(first.Input), append(as, opts...)...)
	if err != nil {
		return newID, fmt.Errorf("client: restart of instance %q: %w", instanceID, err)
	}
	return newID, nil
}

// ended returns an instance that is over, and the event with which its last execution began.
func (c *Client) ended(ctx context.Context, instanceID string) (in provider.Instance, began history.Event, err error) {
	in, err = c.readInstance(ctx, instanceID)
	switch {
	case err != nil:
		return in, began, err
	case in.Status == StatusDeleting:
		return in, began, fmt.Errorf("instance %q is being purged: %w", instanceID, ErrNotFound)
	case !in.Status.Terminal():
		return in, began, fmt.Errorf("instance %q is %s: %w", instanceID, in.Status, ErrNotTerminal)
	}

	for e, err := range c.hub.ReadHistory(ctx, instanceID, in.ExecutionID, 0) {
		return in, e, err
	}
	return in, began, errors.New("its history is empty")
}

// restartID is the id of a restarted instance. An id that would be too long has none of the old one.
func restartID(instanceID, key string) string {
	id := restarted.ReplaceAllString(instanceID, "") + ".restart-" + key[:8]
	if len(id) > MaxInstanceIDBytes {
		return key
	}
	return id
}
