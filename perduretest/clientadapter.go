package perduretest

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/perdure/perdure/perduretest/internal/inside"
	"github.com/perdure/perdure/provider"
)

// clientAdapter is the hub for Env.Client. Its calls run in the bubble, and its waits advance the clock.
type clientAdapter struct {
	*inside.Provider

	env *Env
}

func newClientAdapter(e *Env) *clientAdapter {
	return &clientAdapter{inside.NewProvider(e.hub.Provider, envBubble{e}), e}
}

// envBubble implements inside.Bubble.
type envBubble struct{ env *Env }

func (b envBubble) Do(f func())     { b.env.do(f) }
func (b envBubble) IsInside() bool  { return b.env.watchdog.isInside() }
func (b envBubble) StartMayBeLost() { b.env.hub.Sweeper.StartMayBeLost() }

// QueryInstance runs a query in the hub's orchestrators, which run the test's code. Time limits are in virtual time.
func (b *clientAdapter) QueryInstance(
	ctx context.Context, q provider.QueryRequest,
) (result json.RawMessage, err error) {
	ctx = b.Within(ctx)
	b.env.do(func() { result, err = b.env.hub.QueryInstance(ctx, q) })
	return result, err
}

// WaitInstance implements client.Waiter. It advances the clock until the instance has ended.
func (b *clientAdapter) WaitInstance(ctx context.Context, instanceID string) (provider.Instance, error) {
	if b.env.watchdog.isInside() {
		return b.pollInstance(ctx, instanceID)
	}
	if b.env.network.isBusy() {
		return provider.Instance{}, errNoWait
	}
	return b.env.wait(ctx, b.env.hub.Provider, instanceID)
}

// WaitUpdate implements client.UpdateWaiter. It advances the clock until the update is done.
func (b *clientAdapter) WaitUpdate(
	ctx context.Context, instanceID string, poll func(context.Context) (done bool, err error),
) error {
	switch {
	case b.env.watchdog.isInside():
		return pollUntil(ctx, poll)
	case b.env.network.isBusy():
		return errNoWait
	default:
		return until(ctx, b.env, b.env.hub.Provider, instanceID, poll)
	}
}

// errNoWait is the error of a wait that would never end.
var errNoWait = errors.New("perduretest: an activity of WithNetwork, or code that it calls, cannot wait for an " +
	"instance, because virtual time does not advance while it runs")

// pollInterval is the interval at which an activity that waits for an instance reads it.
const pollInterval = time.Second

// pollInstance waits in an activity. There, virtual time passes without a call of Advance.
func (b *clientAdapter) pollInstance(ctx context.Context, instanceID string) (in provider.Instance, err error) {
	err = pollUntil(ctx, func(ctx context.Context) (done bool, err error) {
		in, err = b.env.hub.Provider.ReadInstance(ctx, instanceID)
		return in.Status.Terminal(), err
	})
	return in, err
}

func pollUntil(ctx context.Context, poll func(context.Context) (done bool, err error)) error {
	for {
		if done, err := poll(ctx); done || err != nil {
			return err
		}
		select {
		case <-time.After(pollInterval):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
