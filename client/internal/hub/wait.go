package hub

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/provider"
)

// Delays between two polls. The first delay is short because many orchestrations end quickly.
const (
	FirstDelay = 20 * time.Millisecond
	MaxDelay   = time.Second
)

// Waiter has the method of client.Waiter.
type Waiter interface {
	WaitInstance(ctx context.Context, instanceID string) (provider.Instance, error)
}

// UpdateWaiter has the method of client.UpdateWaiter.
type UpdateWaiter interface {
	WaitUpdate(ctx context.Context, instanceID string, poll func(ctx context.Context) (done bool, err error)) error
}

// TailReader is client.TailReader.
type TailReader interface {
	ReadTail(ctx context.Context, instanceID, executionID string, at *provider.Tail) iter.Seq2[history.Event, error]
}

// WaitEnd waits until an instance has ended. If ctx ends first, it returns the last known state and an error.
func (h *Hub) WaitEnd(ctx context.Context, instanceID string) (last provider.Instance, err error) {
	if w := h.Waiter; w != nil {
		if err := inputcheck.InstanceID(instanceID); err != nil {
			return last, err
		}
		return w.WaitInstance(ctx, instanceID)
	}
	err = h.poll(ctx, MaxDelay, func(ctx context.Context) (done bool, err error) {
		in, err := h.Instance(ctx, instanceID)
		if err != nil {
			return false, err
		}
		last = in
		return in.Status.Terminal(), nil
	})
	return last, err
}

// WaitUntil calls poll repeatedly until it reports done or returns an error. A backend that is an UpdateWaiter controls
// the polling.
func (h *Hub) WaitUntil(
	ctx context.Context, instanceID string, poll func(context.Context) (done bool, err error),
) error {
	return h.WaitUntilEvery(ctx, instanceID, MaxDelay, poll)
}

// WaitUntilEvery is WaitUntil with the longest delay between two polls.
func (h *Hub) WaitUntilEvery(
	ctx context.Context, instanceID string, longest time.Duration,
	poll func(context.Context) (done bool, err error),
) error {
	if w := h.UpdateWaiter; w != nil {
		return w.WaitUpdate(ctx, instanceID, poll)
	}
	return h.poll(ctx, longest, poll)
}

func (h *Hub) poll(
	ctx context.Context, longest time.Duration, poll func(context.Context) (done bool, err error),
) error {
	for delay := min(FirstDelay, longest); ; delay = min(2*delay, longest) {
		if done, err := poll(ctx); done || err != nil {
			return err
		}
		if err := h.Sleep(ctx, Jitter(delay)); err != nil {
			return err
		}
	}
}

// Jitter returns a random duration between half of d and d, so that clients do not poll at the same moment.
func Jitter(d time.Duration) time.Duration { return d - rand.N(d/2+1) }

// WaitError returns the error of ctx if ctx has ended, and err otherwise.
func WaitError(ctx context.Context, instanceID string, err error) error {
	if ended := ctx.Err(); ended != nil {
		return fmt.Errorf("instance %q: %w", instanceID, ended)
	}
	return err
}
