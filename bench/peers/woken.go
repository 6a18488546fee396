package peers

import (
	"context"
	"sync"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/bench/workload"
	"github.com/perdure/perdure/client"
)

// perdureClient starts instances of a hub whose turns run in this process, and waits for their end. An interceptor of
// the turns ends the wait. The client's own wait would distort the result: it polls after 20 ms and backs off to a
// second.
type perdureClient struct {
	c *client.Client

	mu    sync.Mutex
	ended map[string]chan struct{} // by instance ID; closed when the instance has ended
}

// turn intercepts a turn and wakes the waiter if it was the last one.
func (p *perdureClient) turn(ctx context.Context, t perdure.TurnInfo, next func(context.Context) perdure.TurnResult) {
	if next(ctx).Status.Terminal() {
		p.wake(t.InstanceID)
	}
}

func (p *perdureClient) interceptors() []perdure.Interceptor {
	return []perdure.Interceptor{{Turn: p.turn}}
}

// await returns a channel that is closed when the instance has ended.
func (p *perdureClient) await(id string) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended == nil {
		p.ended = map[string]chan struct{}{}
	}
	ended := make(chan struct{})
	p.ended[id] = ended
	return ended
}

func (p *perdureClient) wake(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ended := p.ended[id]; ended != nil {
		close(ended)
		delete(p.ended, id)
	}
}

func (p *perdureClient) Run(ctx context.Context, kind workload.Kind, in workload.Input) (int, error) {
	ended := p.await(in.ID)
	if _, err := p.c.Start(ctx, string(kind), in, client.WithInstanceID(in.ID)); err != nil {
		return 0, err
	}
	select {
	case <-ended:
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	s, err := p.c.Status(withStatusRequest(ctx), in.ID)
	if err != nil {
		return 0, err
	}
	return client.Result[int](s)
}

func (p *perdureClient) Cancel(ctx context.Context, id string) error {
	return p.c.Cancel(ctx, id, "benchmark")
}

// statusRequestKey marks the client's status requests, which are not calls of the engine.
type statusRequestKey struct{}

func withStatusRequest(ctx context.Context) context.Context {
	return context.WithValue(ctx, statusRequestKey{}, true)
}

func isStatusRequest(ctx context.Context) bool { return ctx.Value(statusRequestKey{}) != nil }
