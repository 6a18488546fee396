package execution

import (
	"errors"
	"fmt"
	"strings"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/payloads"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/internal/replay/stack"
	"github.com/perdure/perdure/provider"
)

// ErrPaused is the reason for which the code of a paused execution does not run.
var ErrPaused = errors.New("dispatch: instance is paused, so its code does not run")

// UnregisteredError is the error of an instance whose orchestration is not registered in this build.
type UnregisteredError struct {
	InstanceID, Name, Version string
}

func (e *UnregisteredError) Error() string {
	if e.Version == "" {
		return fmt.Sprintf("instance %q: orchestration %q is not registered in this build", e.InstanceID, e.Name)
	}
	return fmt.Sprintf("instance %q: orchestration %q version %q is not registered in this build",
		e.InstanceID, e.Name, e.Version)
}

// Diagnosis implements Diagnosed.
func (e *UnregisteredError) Diagnosis() *history.Failure {
	return &history.Failure{Type: history.TypeUnregistered, Message: e.Error()}
}

// BlockedError is the error of an instance that is blocked in this build, by its history. Its code does not run.
type BlockedError struct{ Why *history.Failure }

func (e *BlockedError) Error() string {
	return "the instance is blocked in this build, so its code does not run: " + e.Why.Message
}

// Diagnosis implements Diagnosed.
func (e *BlockedError) Diagnosis() *history.Failure { return e.Why }

// BlockedIn returns the reason for which the code of a build cannot continue, or nil if the build has to try. A build
// tries poison once for each message, because another instance may have used up the memory. It also tries if a document
// was missing or unreadable, because the document may be restored.
func BlockedIn(build string, b *history.Blocked) *history.Failure {
	why := b.Diagnoses[build]
	if why == nil || why.Type == history.TypePoison ||
		why.Type == history.TypeCorrupt || why.Type == history.TypePayloadUnreadable {
		return nil
	}
	return why
}

// Diagnosed is an error that names the failure for which an instance is blocked.
type Diagnosed interface {
	error
	Diagnosis() *history.Failure
}

// Diagnose returns the failure for which an instance is blocked, or nil if an error is not a fault of the code.
func Diagnose(err error) *history.Failure {
	if e, ok := errors.AsType[*replay.NondeterminismError](err); ok {
		return &history.Failure{
			Type: history.TypeNondeterminism, Message: e.Error(),
			Expected: e.Expected, Got: e.Got, EventID: e.EventID,
		}
	}
	if e, ok := errors.AsType[Diagnosed](err); ok {
		return e.Diagnosis()
	}
	if e, ok := errors.AsType[*replay.UnregisteredError](err); ok {
		return &history.Failure{Type: history.TypeUnregistered, Message: e.Error()}
	}
	if why := UnreadablePayload(err); why != nil {
		return why
	}
	e, ok := errors.AsType[*replay.FetchError](err)
	if ok && (errors.Is(e, provider.ErrCorrupt) || errors.Is(e, provider.ErrNotFound)) { // any other is retried
		return &history.Failure{Type: history.TypeCorrupt, Message: e.Error()}
	}
	if e, ok := errors.AsType[*replay.BlockedOutsideError](err); ok {
		return &history.Failure{Type: history.TypeBlockingCall, Message: withPosition(e, e.Stack)}
	}
	if e, ok := errors.AsType[*replay.ForeignGoroutineError](err); ok {
		return &history.Failure{Type: history.TypeForeignGoroutine, Message: withPosition(e, e.Stack)}
	}
	return nil
}

// UnreadablePayload returns the failure of a payload that stays unreadable, or nil if err is another error.
func UnreadablePayload(err error) *history.Failure {
	if !payloads.IsPermanent(err) {
		return nil
	}
	return &history.Failure{Type: history.TypePayloadUnreadable, Message: err.Error()}
}

// withPosition returns the first line of an error with the position of the code. The log has the stack.
func withPosition(err error, trace string) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	where := stack.Where(trace)
	if where == "" {
		return strings.TrimSuffix(line, ":")
	}
	return line + " " + where
}
