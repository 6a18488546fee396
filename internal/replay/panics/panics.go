// Package panics converts panics and Goexit of user code to failures.
package panics

import (
	"fmt"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/stack"
)

// Panic is a panic value with a known failure. An orchestration that panics with it fails with this failure instead of
// history.TypePanic.
type Panic interface{ Failure() *history.Failure }

// FailureOf returns the failure of code that panicked with r. Call it while recovering, because it records the stack of
// the panic.
func FailureOf(r any) *history.Failure {
	if p, ok := r.(Panic); ok {
		return p.Failure()
	}
	return &history.Failure{Type: history.TypePanic, Message: text(r) + "\n\n" + stack.Current()}
}

// Goexit returns the failure of an orchestration that ended its goroutine.
func Goexit() *history.Failure {
	return &history.Failure{
		Type: history.TypeGoexit,
		Message: "the orchestration called runtime.Goexit instead of returning " +
			"(testing.T's FailNow, Fatal and Skip do)",
	}
}

// HandlerFailure returns the failure of a handler that did not return. r is the result of recover. Call it while
// recovering.
func HandlerFailure(r any) *history.Failure {
	if r == nil {
		return &history.Failure{
			Type: history.TypeGoexit, Message: "the handler called runtime.Goexit instead of returning",
		}
	}
	if p, ok := r.(Panic); ok {
		return p.Failure()
	}
	return &history.Failure{Type: history.TypePanic, Message: text(r) + ": " + stack.Where(stack.Current())}
}

func text(r any) string { return stack.Truncate(fmt.Append(nil, r)) }

// With returns a panic value with a failure. The value is an error for code that recovers it.
func With(f *history.Failure) error { return &fatal{f} }

type fatal struct{ failure *history.Failure }

// Error implements error.
func (e *fatal) Error() string { return e.failure.Message }

// Failure implements Panic.
func (e *fatal) Failure() *history.Failure { return e.failure }

// Again returns a value with which to panic again after a panic was recovered. f is the failure of that panic.
func Again(f *history.Failure) Panic { return &repeatedPanic{f} }

type repeatedPanic struct{ failure *history.Failure }

// String returns the message of the failure, for code that recovers the value.
func (p *repeatedPanic) String() string { return p.failure.Message }

// Failure implements Panic.
func (p *repeatedPanic) Failure() *history.Failure { return p.failure }
