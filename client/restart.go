package client

import (
	"context"
	"fmt"
)

// Restart starts the orchestration of an ended instance again and returns the ID of the new instance. The new instance
// gets the input, the requested version and the tags of the last execution. Options override them. The new instance
// does not receive external events from earlier executions. The ended instance and its history stay unchanged, and its
// parent is not notified.
//
// The new ID is derived from the instance and its end, such as "order-7.restart-3f9c2a1b". Repeating the call is safe,
// because an instance is restarted only once. To restart it again, restart the new instance, or use WithInstanceID and
// WithIdempotencyKey.
//
// FromEvent keeps the history up to an event instead of starting at the beginning.
//
// Restart returns ErrNotFound if the instance does not exist or is being purged, ErrNotEnded if it has not ended, and
// the errors of Start. It returns a *provider.FieldError for a schedule and for a key of an entity. To create a
// schedule again, use Schedules.Put. To start a key again, use Purge and CallEntity.
func (c *Client) Restart(ctx context.Context, instanceID string, opts ...StartOption) (newID string, err error) {
	o := optionsOf(opts)
	if err := o.RejectIfExists(); err != nil {
		return "", fmt.Errorf("client: restart: %w", err)
	}
	newID, err = c.ops.Restart(ctx, instanceID, &o)
	if err != nil {
		return newID, fmt.Errorf("client: restart: %w", err)
	}
	return newID, nil
}

// FromEvent keeps the history of the last execution up to and including the event with this ID, and continues from
// there with the current code. It is an option of Restart. An instance is restarted once from each event.
//
// The new instance has all results, fired timers and events up to that point. Activities and children that were running
// are started again, with new timeouts. Timers keep their due time and fire immediately if it has passed. External
// events without a response are sent again. Detached orchestrations are not started again.
//
// The event must be an input event, such as the result of an activity, or the last event that a turn or an input
// caused. The current code processes an input event again. Up to the event, the code sees the instance and execution
// IDs and random numbers of the original instance. If the current code makes different decisions on that history, the
// new instance is blocked. The history of the new instance starts with an ExecutionRestarted event that names the
// original instance, execution and event.
//
// For any other event, FromEvent results in a *provider.FieldError for the field "from". The error names the nearest
// valid events. FromEvent also results in a *provider.FieldError in these cases:
//
//   - WithDelay or another version is given.
//   - A child that was running has an ID that the code chose, and an instance with this ID exists. The error also
//     matches ErrAlreadyExists. Purge the child first.
//   - The compressed history exceeds 3 MiB. The error also matches provider.ErrTooLarge.
func FromEvent(id int64) StartOption { return func(o *startOptions) { o.FromEvent = &id } }
