package peers

import (
	"context"
	"sync"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/bench/workload"
	"github.com/perdure/perdure/client"
)

// perdureClient starts and awaits instances of a hub whose turns run in this process. Its waits are woken by an interceptor of these turns: the client's own
// wait looks after 20 ms, then more and more seldom up to a second, and would measure itself.
type perdureClient struct {
	c *client.Client

	mu   sync.Mutex
	over map[string]chan struct{} // by instance
}

// turn is an interceptor's.
func (p *perdureClient) turn(ctx context.Context, t perdure.TurnInfo, next func(context.Context) perdure.TurnResult) {
	if next(ctx).Status.Terminal() {
		p.wake(t.InstanceID)
	}
}

func (p *perdureClient) interceptors() []perdure.Interceptor {
	return []perdure.Interceptor{{Turn: p.turn}}
}

// await returns what is closed once an instance is over.
func (p *perdureClient) await(id string) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over == nil {
		p.over = map[string]chan struct{}{}
	}
	over := make(chan struct{})
	p.over[id] = over
	return over
}

func (p *perdureClient) wake(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if over := p.over[id]; over != nil {
		close(over)
		delete(p.over, id)
	}
}

func (p *perdureClient) Run(ctx context.Context, kind workload.Kind, in workload.Input) (int, error) {
	over := p.await(in.ID)
	if _, err := p.c.Start(ctx, string(kind), in, client.WithInstanceID(in.ID)); err != nil {
		return 0, err
	}
	select {
	case <-over:
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	s, err := p.c.Status(looking(ctx), in.ID)
	if err != nil {
		return 0, err
	}
	return client.Result[int](s)
}

func (p *perdureClient) Cancel(ctx context.Context, id string) error {
	return p.c.Cancel(ctx, id, "benchmark")
}

// lookKey marks the client's look at an instance: it is no call of the engine.
type lookKey struct{}

func looking(ctx context.Context) context.Context { return context.WithValue(ctx, lookKey{}, true) }

func looks(ctx context.Context) bool { return ctx.Value(lookKey{}) != nil }
