package client

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/oklog/ulid/v2"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Pause has an instance stand still: once it has taken the order it is Paused, and its code is not run until Resume. What
// arrives meanwhile, events, outcomes, timers and a cancel, is kept in its history, and its code sees it then. Activities
// that are scheduled go on, with their retries and their time limits, and sub-orchestrations go on. Terminate ends it all
// the same. The message, of at most 1 KiB, is the reason.
//
// Continue-as-new does not end a pause. Of several the first counts, and one Resume ends it. It returns ErrNotFound when
// there is no such instance, and ErrTerminal when it is over. Repeating it changes nothing.
func (c *Client) Pause(ctx context.Context, instanceID, message string) error {
	if _, err := c.order(ctx, callPause, provider.MessageExecutionSuspended, instanceID, message); err != nil {
		return fmt.Errorf("client: pause: %w", err)
	}
	return nil
}

// Resume lets a paused instance go on: its code sees what has arrived meanwhile, in its order. The message, of at most
// 1 KiB, is the reason. Repeating it changes nothing.
//
// It returns ErrNotFound when there is no such instance, and ErrTerminal when it is over. It returns ErrNotPaused when the
// instance does not show that it is paused. The order is sent then as well, and ends a Pause that is on its way; it has no
// other effect.
func (c *Client) Resume(ctx context.Context, instanceID, message string) error {
	before, err := c.order(ctx, callResume, provider.MessageExecutionResumed, instanceID, message)
	if err == nil && before != StatusPaused {
		err = fmt.Errorf("instance %q is %s: %w", instanceID, before, ErrNotPaused)
	}
	if err != nil {
		return fmt.Errorf("client: resume: %w", err)
	}
	return nil
}

// order sends an order to pause or to resume, and returns what the instance was before.
func (c *Client) order(ctx context.Context, operation string, kind provider.MessageKind, instanceID, message string) (before RuntimeStatus, err error) {
	if err := checkText(fieldMessage, message, 0, MaxMessageBytes); err != nil {
		return "", err
	}
	m := provider.Message{
		Kind: kind, InstanceID: instanceID, Text: message, RequestedBy: c.decider(ctx),
		EventID: history.PauseIDPrefix + ulid.MustNew(ulid.Timestamp(c.now()), rand.Reader).String(),
	}
	return c.sendTo(ctx, operation, m)
}
