package simhub

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/perdure/perdure/internal/simaws"
)

// ErrCrashed is the error of every AWS call of an invocation whose process has crashed.
var ErrCrashed = errors.New("simhub: the function's process has crashed")

type invocationKey struct{}

// invocation is one run of a function. After a crash, its AWS calls fail, so that its later work has no effect.
type invocation struct {
	crashed  atomic.Bool
	ended    atomic.Bool
	name     string     // the receipt of its first message
	schedule *Scheduler // parks its calls; nil if there is none
	client   bool       // a client whose calls park like those of an invocation
}

func begin(ctx context.Context, name string, s *Scheduler) (context.Context, *invocation) {
	inv := &invocation{name: name, schedule: s}
	return context.WithValue(ctx, invocationKey{}, inv), inv
}

func (i *invocation) err() error {
	if i.crashed.Load() {
		return ErrCrashed
	}
	return nil
}

// Crash returns an interceptor that kills an invocation before or after a call for which at returns true. It ignores
// calls that do not come from a function, such as those of a client.
func Crash(at func(c simaws.Call) (before, after bool)) simaws.Interceptor {
	return func(ctx context.Context, c simaws.Call, next func() error) error {
		inv, ok := ctx.Value(invocationKey{}).(*invocation)
		if !ok || inv.client {
			return next()
		}
		if inv.crashed.Load() {
			return ErrCrashed
		}
		before, after := at(c)
		if before {
			inv.crashed.Store(true)
			return ErrCrashed
		}
		err := next()
		if after {
			inv.crashed.Store(true)
			return ErrCrashed
		}
		return err
	}
}

// Die kills the invocation that runs the activity of ctx, like code that ends its process. The hub's interceptor must
// reject AWS calls of killed invocations, like the interceptor of Crash.
func Die(ctx context.Context) {
	if inv, ok := ctx.Value(invocationKey{}).(*invocation); ok {
		inv.crashed.Store(true)
	}
}

// Process returns the name of the invocation or client process of ctx, and whether it has crashed. Other contexts have
// no name.
func Process(ctx context.Context) (name string, died bool) {
	inv, ok := ctx.Value(invocationKey{}).(*invocation)
	if !ok {
		return "", false
	}
	return inv.name, inv.crashed.Load()
}

// CrashAt kills the invocation that makes the n-th call of all functions, before or after that call. calls is the
// number of calls.
func CrashAt(n int64, after bool) (intercept simaws.Interceptor, calls *atomic.Int64) {
	calls = &atomic.Int64{}
	return Crash(func(simaws.Call) (bool, bool) {
		hit := calls.Add(1) == n
		return hit && !after, hit && after
	}), calls
}

// ErrFailed is the error of a call that FailAt has selected.
var ErrFailed = errors.New("simhub: the call failed")

// FailAt fails the n-th call of all functions, without a crash. The call never arrived or, with after, its response was
// lost. calls is the number of calls.
func FailAt(n int64, after bool) (intercept simaws.Interceptor, calls *atomic.Int64) {
	calls = &atomic.Int64{}
	return func(ctx context.Context, _ simaws.Call, next func() error) error {
		if _, ok := ctx.Value(invocationKey{}).(*invocation); !ok || calls.Add(1) != n {
			return next()
		}
		if after {
			_ = next() // the caller does not receive the result
		}
		return ErrFailed
	}, calls
}
