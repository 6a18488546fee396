package simhub

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/perdure/perdure/internal/simaws"
)

// ErrCrashed is what every AWS call of an invocation gets once its process has died.
var ErrCrashed = errors.New("simhub: the function's process has crashed")

type invocationKey struct{}

// invocation is one run of a function. A crashed one reaches AWS no more, so nothing it does afterwards shows.
type invocation struct {
	crashed  atomic.Bool
	ended    atomic.Bool
	name     string     // the receipt of its first message
	schedule *Scheduler // what it parks at, if anything
	client   bool       // it is no invocation, but a client that parks as one
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

// Crash makes an interceptor that kills the invocation which makes the call at says, before the call or after it. Calls from
// outside functions (a client's) are never chosen.
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

// Die kills the invocation that an activity's context is of, as code does that ends its process. The hub's interceptor must be
// one of Crash, which keeps what is dead from calling AWS.
func Die(ctx context.Context) {
	if inv, ok := ctx.Value(invocationKey{}).(*invocation); ok {
		inv.crashed.Store(true)
	}
}

// Process says which invocation, or process of a client's, a context is of, and whether that has died. One outside of them has no name.
func Process(ctx context.Context) (name string, died bool) {
	inv, ok := ctx.Value(invocationKey{}).(*invocation)
	if !ok {
		return "", false
	}
	return inv.name, inv.crashed.Load()
}

// CrashAt kills the invocation that makes the n-th call of all functions, before that call or after it. calls counts them.
func CrashAt(n int64, after bool) (intercept simaws.Interceptor, calls *atomic.Int64) {
	calls = &atomic.Int64{}
	return Crash(func(simaws.Call) (bool, bool) {
		hit := calls.Add(1) == n
		return hit && !after, hit && after
	}), calls
}

// ErrFailed is what a call gets that FailAt has picked.
var ErrFailed = errors.New("simhub: the call failed")

// FailAt fails the n-th call of all functions, which live on: it never arrived or, with after, its response was lost. calls counts
// them.
func FailAt(n int64, after bool) (intercept simaws.Interceptor, calls *atomic.Int64) {
	calls = &atomic.Int64{}
	return func(ctx context.Context, _ simaws.Call, next func() error) error {
		if _, ok := ctx.Value(invocationKey{}).(*invocation); !ok || calls.Add(1) != n {
			return next()
		}
		if after {
			_ = next() // the caller will not know how it went
		}
		return ErrFailed
	}, calls
}
