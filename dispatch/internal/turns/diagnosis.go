package turns

import (
	"errors"
	"fmt"
	"strings"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/provider"
)

// unregisteredError means that the instance's orchestration is not in this build's registry.
type unregisteredError struct {
	InstanceID, Name, Version string
}

func (e *unregisteredError) Error() string {
	if e.Version == "" {
		return fmt.Sprintf("instance %q: orchestration %q is not registered in this build", e.InstanceID, e.Name)
	}
	return fmt.Sprintf("instance %q: orchestration %q version %q is not registered in this build", e.InstanceID, e.Name, e.Version)
}

// handoverError means that an execution continues as new, and that no commit can hold what is parked and goes to the next: code that takes more of it before
// it continues can go on.
type handoverError struct{ err error }

func (e *handoverError) Error() string {
	return "too many parked inputs for the next execution; consume more of them before ContinueAsNew: " + e.err.Error()
}

// Unwrap returns the error of the commit.
func (e *handoverError) Unwrap() error { return e.err }

// diagnosis is what a failure of the code is called; nil when err is none.
func diagnosis(err error) *history.Failure {
	if e, ok := errors.AsType[*replay.NondeterminismError](err); ok {
		return &history.Failure{Type: history.TypeNondeterminism, Message: e.Error(), Expected: e.Expected, Got: e.Got, EventID: e.EventID}
	}
	if e, ok := errors.AsType[*hopelessError](err); ok {
		return e.why
	}
	if e, ok := errors.AsType[*poisonError](err); ok {
		return &history.Failure{Type: history.TypePoison, Message: e.Error()}
	}
	if e, ok := errors.AsType[*unregisteredError](err); ok {
		return &history.Failure{Type: history.TypeUnregistered, Message: e.Error()}
	}
	if e, ok := errors.AsType[*replay.UnregisteredError](err); ok {
		return &history.Failure{Type: history.TypeUnregistered, Message: e.Error()}
	}
	if e, ok := errors.AsType[*handoverError](err); ok {
		return &history.Failure{Type: history.TypePayloadTooLarge, Message: e.Error()}
	}
	if why := unreadable(err); why != nil {
		return why
	}
	if e, ok := errors.AsType[*replay.FetchError](err); ok && (errors.Is(e, provider.ErrCorrupt) || errors.Is(e, provider.ErrNotFound)) {
		return &history.Failure{Type: history.TypeCorrupt, Message: e.Error()} // any other is the store's, and is tried again
	}
	if e, ok := errors.AsType[*replay.BlockedOutsideError](err); ok {
		return &history.Failure{Type: history.TypeBlockingCall, Message: at(e, e.Stack)}
	}
	if e, ok := errors.AsType[*replay.ForeignGoroutineError](err); ok {
		return &history.Failure{Type: history.TypeForeignGoroutine, Message: at(e, e.Stack)}
	}
	return nil
}

// at is an error without its stack, which is left to the log, but for where in it the code was.
func at(err error, stack string) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	where := replay.Where(stack)
	if where == "" {
		return strings.TrimSuffix(line, ":")
	}
	return line + " " + where
}
