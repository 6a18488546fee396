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

// Restart starts the orchestration of an ended instance again and returns the ID of the new instance. The new instance
// gets the input, the requested version and the tags of the last execution. Options override them. The new instance
// does not receive external events that an execution carried over. The ended instance and its history stay unchanged,
// and its parent is not notified.
//
// The new ID is derived from the instance and its end, such as "order-7.restart-3f9c2a1b". Repeating the call is safe:
// an instance is restarted once. To restart it again, restart the new instance, or use WithInstanceID and
// WithIdempotencyKey.
//
// FromEvent keeps the history up to an event instead of starting at the beginning.
//
// Restart returns ErrNotFound if the instance does not exist or is being purged, ErrNotEnded if it has not ended, and
// the errors of Start.
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
	if _, ok := first.Input.Document(); !ok && !first.Input.IsEncoded() {
		return "", fmt.Errorf("client: restart: instance %q: history does not contain the input", instanceID)
	}

	key := digest("restart", instanceID, in.StartID, in.ExecutionID)
	as := []StartOption{WithInstanceID(restartID(instanceID, key)), WithIdempotencyKey(key), WithVersion(first.Version), WithTags(first.Tags)}
	newID, err = c.Start(ctx, first.Name, began(first.Input), append(as, opts...)...)
	if err != nil {
		return newID, fmt.Errorf("client: restart instance %q: %w", instanceID, err)
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
		return in, began, fmt.Errorf("instance %q is %s: %w", instanceID, in.Status, ErrNotEnded)
	}

	for e, err := range c.hub.ReadHistory(ctx, instanceID, in.ExecutionID, 0) {
		return in, e, err
	}
	return in, began, errors.New("history is empty")
}

// restartID is the id of a restarted instance. An id that would be too long has none of the old one.
func restartID(instanceID, key string) string {
	id := restarted.ReplaceAllString(instanceID, "") + ".restart-" + key[:8]
	if len(id) > MaxInstanceIDBytes {
		return key
	}
	return id
}
