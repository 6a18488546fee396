// Package faults reports faults of user code to an observer, such as the test kit. A deployed hub has no observer and
// only logs them.
package faults

import (
	"context"
	"errors"
)

// Kind is a kind of fault.
type Kind string

// The kinds of faults.
const (
	// Nondeterminism means that the decisions of a replay differ from the history.
	Nondeterminism Kind = "nondeterminism"
	// Hang means that the code of an orchestration did not return within the time limit of a turn.
	Hang Kind = "hang"
	// ForeignGoroutine means that an orchestration used its context or a future on a goroutine that it had started.
	ForeignGoroutine Kind = "foreign goroutine"
	// GoroutineLeak means that an activity did not return after its context had ended.
	GoroutineLeak Kind = "goroutine leak"
)

// Event is one fault. The engine may report the same fault several times, for example once per delivery.
type Event struct {
	Kind       Kind
	InstanceID string
	// Activity and ActivityID are set for a GoroutineLeak.
	Activity   string
	ActivityID int64
	// Err is the error with the stack or the decisions. It is nil for a GoroutineLeak.
	Err error
}

// Observer receives faults. It is called from any goroutine and must not block.
type Observer func(Event)

// Fault is an error that is a fault of user code.
type Fault interface {
	error
	FaultKind() Kind
}

type observerKey struct{}

// WithObserver returns a context with which the engine reports faults to observe. A nil observer returns ctx.
func WithObserver(ctx context.Context, observe Observer) context.Context {
	if observe == nil {
		return ctx
	}
	return context.WithValue(ctx, observerKey{}, observe)
}

// ObserverOf returns the observer of a context, or nil.
func ObserverOf(ctx context.Context) Observer {
	observe, _ := ctx.Value(observerKey{}).(Observer)
	return observe
}

// Report reports an event to the observer of ctx, if there is one.
func Report(ctx context.Context, e Event) {
	if observe := ObserverOf(ctx); observe != nil {
		observe(e)
	}
}

// ReportError reports the fault in the chain of err, if there is one.
func ReportError(ctx context.Context, instanceID string, err error) {
	if f, ok := errors.AsType[Fault](err); ok {
		Report(ctx, Event{Kind: f.FaultKind(), InstanceID: instanceID, Err: f})
	}
}
