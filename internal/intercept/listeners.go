package intercept

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync/atomic"

	"github.com/perdure/perdure/internal/logevent"
)

// Listeners are functions of interceptors that are told of something once it has happened: there is nothing around which they could stand. A nil
// Listeners has none.
type Listeners[I any] struct {
	what  string
	log   *slog.Logger
	calls []func(ctx context.Context, info I)
}

// NewListeners takes those functions that are not nil, and returns nil where all are, as New does.
func NewListeners[T, I any](what string, log *slog.Logger, interceptors []T, of func(T) func(context.Context, I)) *Listeners[I] {
	l := &Listeners[I]{what: what, log: log}
	for _, i := range interceptors {
		if f := of(i); f != nil {
			l.calls = append(l.calls, f)
		}
	}
	if len(l.calls) == 0 {
		return nil
	}
	return l
}

// Names are those of the functions, in the order in which they are called.
func (l *Listeners[I]) Names() (all []string) {
	if l == nil {
		return nil
	}
	for _, f := range l.calls {
		all = append(all, nameOf(f))
	}
	return all
}

// Tell calls the functions, one after the other. A panic of one is logged, and the next is called. One that does not come back before the context
// is out of time is named in the log.
func (l *Listeners[I]) Tell(ctx context.Context, info I) {
	if l == nil {
		return
	}
	at := &atomic.Int64{}
	defer context.AfterFunc(ctx, func() { report(ctx, l.log, l.what, l.calls[at.Load()]) })()
	for i := range l.calls {
		at.Store(int64(i))
		l.call(ctx, i, info)
	}
}

func (l *Listeners[I]) call(ctx context.Context, i int, info I) {
	defer func() {
		if r := recover(); r != nil {
			l.log.ErrorContext(ctx, "interceptor panicked, continuing without it",
				"event", logevent.InterceptorPanicked, "around", l.what, "panic", r, "stack", string(debug.Stack()))
		}
	}()
	l.calls[i](ctx, info)
}
