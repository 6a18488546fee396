package perdure

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/failures"
	"github.com/perdure/perdure/internal/replay"
)

// NondeterminismError means that the decisions of the orchestration's code differ from its history. The code has an
// incompatible change, or depends on a value that varies, such as the clock, a random number or the order of a map. The
// instance is blocked, and continues when the code is fixed. With FailOnNondeterminism it fails instead.
type NondeterminismError struct {
	InstanceID  string
	ExecutionID string
	// EventID is the ID of the first event that differs. If the history has no such event, EventID is the ID of the
	// last event.
	EventID int64
	// Expected describes the decision in the history. Got describes the decision of the code.
	Expected, Got string
}

// Error returns a message with both decisions.
func (e *NondeterminismError) Error() string { return (*replay.NondeterminismError)(e).Error() }

// ActivityError is the failure of an activity, as its orchestration receives it. errors.As finds a *TimeoutError,
// *InterruptedError, *CancelledError or *PayloadTooLargeError in it if the activity failed with that error.
type ActivityError struct {
	// Activity is the name of the activity. ActivityID is the ID of the event that scheduled the activity.
	Activity   string
	ActivityID int64
	// Type is the type name of the activity's error. It is the result of the error's ErrorType method, or else the name
	// of its Go type without pointer and package. It is "error" for unnamed types and for the types of packages errors
	// and fmt, and "panic" for a panic. If the error wraps others, Type is the outermost type with a name.
	Type    string
	Message string
	// CancelReason is the reason of a cancelled activity, and CancelOutcome is its outcome (see CancelledError). Both
	// are empty if the activity was not cancelled.
	CancelReason  CancelReason
	CancelOutcome CancelOutcome
	// NonRetryable is true if the activity marked the error with NonRetryable, or if a retry cannot succeed. For
	// example, a retry cannot succeed if the activity repeatedly ended its process (poison).
	NonRetryable bool
	// Cause is the error that the activity's error wrapped, or nil.
	Cause *history.Failure
	// carried has a comparable type, so that errors of this type are comparable.
	carried failures.Carried
}

func newActivityError(name string, id int64, f *history.Failure) *ActivityError {
	return &ActivityError{
		Activity: name, ActivityID: id,
		Type: f.Type, Message: f.Message, CancelReason: CancelReason(f.Reason),
		CancelOutcome: CancelOutcome(f.CancelOutcome), NonRetryable: f.NonRetryable, Cause: f.Cause,
		carried: failures.CarriedBy(f),
	}
}

// Error returns a message with the activity, its ID, the type and the message.
func (e *ActivityError) Error() string {
	return fmt.Sprintf("activity %q (#%d): %s", e.Activity, e.ActivityID, failures.Text(e.Type, e.Message))
}

// Unwrap returns the engine error that the activity failed with, such as a *TimeoutError, or nil.
func (e *ActivityError) Unwrap() error { return engineErrorIn(e.failure()) }

// As finds the details of the error for ErrorDetails.
func (e *ActivityError) As(target any) bool { return e.carried.As(target, e.Cause) }

func (e *ActivityError) failure() *history.Failure {
	return e.carried.AddTo(&history.Failure{
		Type: e.Type, Message: e.Message, Reason: string(e.CancelReason), CancelOutcome: string(e.CancelOutcome),
		NonRetryable: e.NonRetryable, Cause: e.Cause,
	})
}

// SubOrchestrationError is the failure of a sub-orchestration, as its caller receives it. errors.As finds a
// *TimeoutError, *InterruptedError, *CancelledError or *PayloadTooLargeError in it if the orchestration, or work that
// it called, failed with that error.
type SubOrchestrationError struct {
	// Orchestration is the name of the orchestration. InstanceID is the ID of the instance that ran the last attempt.
	Orchestration, InstanceID string
	// Type is the type name of the error, as in ActivityError. If the orchestration returned the error of an activity,
	// Type is "ActivityError" and Cause is the failure of the activity.
	Type    string
	Message string
	// CancelReason is the reason of a cancelled orchestration, and CancelOutcome is its outcome (see CancelledError).
	// Both are empty if the orchestration was not cancelled.
	CancelReason  CancelReason
	CancelOutcome CancelOutcome
	// NonRetryable is true if the error was marked with NonRetryable.
	NonRetryable bool
	// Cause is the error that the orchestration's error wrapped, or nil.
	Cause *history.Failure
	// carried has a comparable type, so that errors of this type are comparable.
	carried failures.Carried
}

func newSubOrchestrationError(name, instanceID string, f *history.Failure) *SubOrchestrationError {
	return &SubOrchestrationError{
		Orchestration: name, InstanceID: instanceID,
		Type: f.Type, Message: f.Message, CancelReason: CancelReason(f.Reason),
		CancelOutcome: CancelOutcome(f.CancelOutcome), NonRetryable: f.NonRetryable, Cause: f.Cause,
		carried: failures.CarriedBy(f),
	}
}

// Error returns a message with the orchestration, the instance, the type and the message.
func (e *SubOrchestrationError) Error() string {
	return fmt.Sprintf("orchestration %q (instance %q): %s", e.Orchestration, e.InstanceID,
		failures.Text(e.Type, e.Message))
}

// Unwrap returns the engine error that the orchestration failed with, such as a *TimeoutError, or nil.
func (e *SubOrchestrationError) Unwrap() error { return engineErrorIn(e.failure()) }

// As finds the details of the error for ErrorDetails.
func (e *SubOrchestrationError) As(target any) bool { return e.carried.As(target, e.Cause) }

func (e *SubOrchestrationError) failure() *history.Failure {
	return e.carried.AddTo(&history.Failure{
		Type: e.Type, Message: e.Message, Reason: string(e.CancelReason), CancelOutcome: string(e.CancelOutcome),
		NonRetryable: e.NonRetryable, Cause: e.Cause,
	})
}

// TimeoutError means that an attempt or an activity exceeded one of its timeouts. Message names the timeout. errors.Is
// finds context.DeadlineExceeded in it.
type TimeoutError struct{ Message string }

// Error returns the message.
func (e *TimeoutError) Error() string { return "timed out: " + e.Message }

// Is reports whether target is context.DeadlineExceeded.
func (e *TimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// ErrorType returns the type name that failures store for the error.
func (e *TimeoutError) ErrorType() string { return history.TypeTimeout }

// InterruptedError means that an attempt of an activity called with AtMostOnce may have started, and that its result is
// unknown. The attempt does not run again.
type InterruptedError struct{ Message string }

// Error returns the message.
func (e *InterruptedError) Error() string { return "interrupted: " + e.Message }

// ErrorType returns the type name that failures store for the error.
func (e *InterruptedError) ErrorType() string { return history.TypeInterrupted }

// PayloadTooLargeError means that a payload exceeds the size limit. Store large data elsewhere and pass a reference to
// it.
type PayloadTooLargeError struct {
	// Name is a description of the payload, such as `input of activity "charge"`.
	Name string
	// Bytes is the size of the encoded payload. Limit is the maximum size.
	Bytes, Limit int
}

// Error returns a message with the sizes.
func (e *PayloadTooLargeError) Error() string {
	return failures.TooLargeMessage(e.Name, e.Bytes, e.Limit)
}

// ErrorType returns the type name that failures store for the error.
func (e *PayloadTooLargeError) ErrorType() string { return history.TypePayloadTooLarge }

// NonRetryable returns true: a retry would fail again.
func (e *PayloadTooLargeError) NonRetryable() bool { return true }
