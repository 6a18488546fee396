// Package intercept runs interceptors around work. The work runs exactly once, even if an interceptor is wrong.
package intercept

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/perdure/perdure/internal/logevent"
)

// Func is an interceptor function. I describes the work, and R is the result of the work.
type Func[I, R any] = func(ctx context.Context, info I, next func(context.Context) R)

// Chain is a list of interceptor functions, the outermost first. A nil Chain is empty.
type Chain[I, R any] struct {
	what  string
	log   *slog.Logger
	calls []Func[I, R]
}

// New returns a chain of the interceptors' functions that are not nil, or nil if all are nil. The function of returns
// the function of one interceptor. what is the name of the work in log lines.
func New[T, I, R any](what string, log *slog.Logger, interceptors []T, of func(T) Func[I, R]) *Chain[I, R] {
	c := &Chain[I, R]{what: what, log: log}
	for _, i := range interceptors {
		if f := of(i); f != nil {
			c.calls = append(c.calls, f)
		}
	}
	if len(c.calls) == 0 {
		return nil
	}
	return c
}

// Run runs the work inside the interceptors and returns the result of the work.
func (c *Chain[I, R]) Run(ctx context.Context, info I, work func(context.Context) R) R {
	if c == nil {
		return work(ctx)
	}
	at := &atomic.Int64{}
	at.Store(inWork)
	defer context.AfterFunc(ctx, func() {
		if i := at.Load(); i != inWork {
			report(ctx, c.log, c.what, c.calls[i])
		}
	})()
	return c.from(ctx, 0, info, at, work)
}

// inWork is the position of a run that is not in the code of an interceptor.
const inWork = -1

// report logs the interceptor that has not returned by the deadline, because it may end the process.
func report(ctx context.Context, log *slog.Logger, what string, f any) {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		log.ErrorContext(ctx, "interceptor did not return in time", "event", logevent.InterceptorTimedOut,
			"around", what, "interceptor", nameOf(f))
	}
}

// Names returns the names of the functions, the outermost first.
func (c *Chain[I, R]) Names() (all []string) {
	if c == nil {
		return nil
	}
	return namesOf(c.calls)
}

func namesOf[F any](calls []F) (all []string) {
	for _, f := range calls {
		all = append(all, nameOf(f))
	}
	return all
}

// nameOf returns the package and name of a function.
func nameOf(f any) string { return runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name() }

// from runs the work inside the i-th interceptor and all later ones. at is the position of the run.
func (c *Chain[I, R]) from(ctx context.Context, i int, info I, at *atomic.Int64, work func(context.Context) R) R {
	if i == len(c.calls) {
		at.Store(inWork)
		return work(ctx)
	}
	at.Store(int64(i))
	s := &step[R]{rest: func(ctx context.Context) R {
		defer at.Store(int64(i))
		return c.from(ctx, i+1, info, at, work)
	}}
	c.call(ctx, i, info, s)
	return s.next(ctx) // the work runs here if the interceptor has not called next
}

// call calls one interceptor. It logs a panic of the interceptor. A panic of the work continues.
func (c *Chain[I, R]) call(ctx context.Context, i int, info I, s *step[R]) {
	defer func() {
		if s.broken() {
			return
		}
		if r := recover(); r != nil {
			logPanic(ctx, c.log, c.what, r)
		}
	}()
	c.calls[i](ctx, info, func(within context.Context) R {
		if within == nil {
			within = ctx
		}
		return s.next(within)
	})
}

// logPanic logs the panic of an interceptor. Call it while recovering.
func logPanic(ctx context.Context, log *slog.Logger, what string, r any) {
	log.ErrorContext(ctx, "interceptor panicked, continuing without it",
		"event", logevent.InterceptorPanicked, "around", what, "panic", r, "stack", string(debug.Stack()))
}

// step is the work that one interceptor wraps.
type step[R any] struct {
	rest func(context.Context) R

	mu          sync.Mutex
	began, done bool
	result      R
	panicked    any    // the value of the panic of the work
	stack       []byte // of that panic
}

// next runs the work once. A concurrent call, which is not allowed, waits until the work has ended.
func (s *step[R]) next(ctx context.Context) R {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.done:
		return s.result
	case s.began:
		panic(fmt.Sprintf("an interceptor has recovered a panic that was not its own: %v\n%s", s.panicked, s.stack))
	}
	s.began = true
	s.do(ctx)
	return s.result
}

// do runs the work and records its panic, because an interceptor may recover it.
func (s *step[R]) do(ctx context.Context) {
	defer func() {
		if s.done {
			return
		}
		if s.panicked = recover(); s.panicked != nil {
			s.stack = debug.Stack()
			panic(s.panicked)
		}
	}()
	s.result = s.rest(ctx)
	s.done = true
}

// broken reports whether the work has panicked, or has ended its goroutine.
func (s *step[R]) broken() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.began && !s.done
}
