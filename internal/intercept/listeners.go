package intercept

import (
	"context"
	"log/slog"
	"sync/atomic"
)

// Listeners is a list of interceptor functions that are called after an event. A nil Listeners is empty.
type Listeners[I any] struct {
	what  string
	log   *slog.Logger
	calls []func(ctx context.Context, info I)
}

// NewListeners returns the functions of the interceptors that are not nil, or nil if all are nil. Its parameters are
// those of New.
func NewListeners[T, I any](
	what string, log *slog.Logger, interceptors []T, of func(T) func(context.Context, I),
) *Listeners[I] {
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

// Names returns the names of the functions in the order in which they are called.
func (l *Listeners[I]) Names() (all []string) {
	if l == nil {
		return nil
	}
	return namesOf(l.calls)
}

// Notify calls the functions one after the other. If a function panics, Notify logs the panic and calls the next
// function. Notify logs the name of a function that has not returned by the deadline of the context.
func (l *Listeners[I]) Notify(ctx context.Context, info I) {
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
			logPanic(ctx, l.log, l.what, r)
		}
	}()
	l.calls[i](ctx, info)
}
