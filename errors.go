package perdure

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/errdetails"
	"github.com/perdure/perdure/internal/replay"
)

// NondeterminismError says that an orchestration's code no longer takes the decisions that its history holds: it was changed in a way
// that running instances do not survive, or it depends on something that is not the same every time (the clock, a random number, the
// order of a map). The instance is not failed: it is blocked, and goes on once the code is mended. With FailOnNondeterminism it fails.
type NondeterminismError struct {
	InstanceID  string
	ExecutionID string
	// EventID is the event of the history where the two part; where the history is over, its last one.
	EventID int64
	// Expected is what history holds there, Got what the code asked for.
	Expected, Got string
}

// Error implements error.
func (e *NondeterminismError) Error() string { return (*replay.NondeterminismError)(e).Error() }

// ActivityError is the failure of an activity, as the orchestration that called it sees it. errors.As finds a
// *TimeoutError, *CancelledError or *PayloadTooLargeError in it where that was the failure.
type ActivityError struct {
	// Activity is the activity's name, ActivityID the id of the event that scheduled it.
	Activity   string
	ActivityID int64
	// Type names the error that the activity returned: what its ErrorType method says, else the name of its Go type,
	// without pointer and package; "error" where it has none of its own, as with errors.New; "panic" for a panic. Of an
	// error that wraps others it is the outermost that has a type of its own.
	Type    string
	Message string
	// Reason says why an activity was cancelled; it is empty when it was not. Ended is that of the *CancelledError, if it was one.
	Reason CancelReason
	Ended  CancelEnd
	// NonRetryable says that the activity marked the error with NonRetryable.
	NonRetryable bool
	// Cause is what the error wrapped; nil when nothing.
	Cause *history.Failure
	// joined has what history.Failure.Joined names; nil when it names nothing: errors stay comparable.
	joined *joinedTypes
	// details are what DetailsOf finds; nil when there are none.
	details *errdetails.Details
}

func newActivityError(name string, id int64, f *history.Failure) *ActivityError {
	return &ActivityError{
		Activity: name, ActivityID: id,
		Type: f.Type, Message: f.Message, Reason: CancelReason(f.Reason), Ended: CancelEnd(f.Ended), NonRetryable: f.NonRetryable, Cause: f.Cause,
		joined: newJoinedTypes(f.Joined), details: errdetails.Own(f),
	}
}

// Error implements error.
func (e *ActivityError) Error() string {
	if e.Type == history.TypeError {
		return fmt.Sprintf("activity %q (#%d): %s", e.Activity, e.ActivityID, e.Message)
	}
	return fmt.Sprintf("activity %q (#%d): %s: %s", e.Activity, e.ActivityID, e.Type, e.Message)
}

// Unwrap returns the engine's own error that the activity failed with, if it was one.
func (e *ActivityError) Unwrap() error { return engineErrorIn(e.failure()) }

// As finds the details that the error came with: DetailsOf asks for them.
func (e *ActivityError) As(target any) bool {
	return errdetails.As(target, e.details, e.Cause)
}

// failure is the error as it came.
func (e *ActivityError) failure() *history.Failure {
	f := &history.Failure{Type: e.Type, Message: e.Message, Reason: string(e.Reason), Ended: string(e.Ended), NonRetryable: e.NonRetryable, Cause: e.Cause, Joined: e.joined.names()}
	setDetails(f, e.details)
	return f
}

// SubOrchestrationError is the failure of a sub-orchestration, as the orchestration that called it sees it. errors.As finds a
// *TimeoutError, *CancelledError or *PayloadTooLargeError in it where that was the failure, of the orchestration itself or of what it
// called.
type SubOrchestrationError struct {
	// Orchestration is the name, InstanceID the instance's id: that of the last attempt.
	Orchestration, InstanceID string
	// Type names the error that the orchestration returned, as in ActivityError. The failure of an activity that it returned is
	// an "ActivityError", with what the activity failed with as its Cause.
	Type    string
	Message string
	// Reason says why the orchestration was cancelled; it is empty when it was not. Ended is that of the *CancelledError, if it was one.
	Reason CancelReason
	Ended  CancelEnd
	// NonRetryable says that the error was marked with NonRetryable.
	NonRetryable bool
	// Cause is what the error wrapped; nil when nothing.
	Cause *history.Failure
	// joined has what history.Failure.Joined names; nil when it names nothing: errors stay comparable.
	joined *joinedTypes
	// details are what DetailsOf finds; nil when there are none.
	details *errdetails.Details
}

func newSubOrchestrationError(name, instanceID string, f *history.Failure) *SubOrchestrationError {
	return &SubOrchestrationError{
		Orchestration: name, InstanceID: instanceID,
		Type: f.Type, Message: f.Message, Reason: CancelReason(f.Reason), Ended: CancelEnd(f.Ended), NonRetryable: f.NonRetryable, Cause: f.Cause,
		joined: newJoinedTypes(f.Joined), details: errdetails.Own(f),
	}
}

// Error implements error.
func (e *SubOrchestrationError) Error() string {
	if e.Type == history.TypeError {
		return fmt.Sprintf("orchestration %q (instance %q): %s", e.Orchestration, e.InstanceID, e.Message)
	}
	return fmt.Sprintf("orchestration %q (instance %q): %s: %s", e.Orchestration, e.InstanceID, e.Type, e.Message)
}

// Unwrap returns the engine's own error that the orchestration failed with, if it was one.
func (e *SubOrchestrationError) Unwrap() error { return engineErrorIn(e.failure()) }

// As finds the details that the error came with: DetailsOf asks for them.
func (e *SubOrchestrationError) As(target any) bool {
	return errdetails.As(target, e.details, e.Cause)
}

// failure is the error as it came.
func (e *SubOrchestrationError) failure() *history.Failure {
	f := &history.Failure{Type: e.Type, Message: e.Message, Reason: string(e.Reason), Ended: string(e.Ended), NonRetryable: e.NonRetryable, Cause: e.Cause, Joined: e.joined.names()}
	setDetails(f, e.details)
	return f
}

// TimeoutError says that something ran out of time. errors.Is finds context.DeadlineExceeded in it.
type TimeoutError struct{ Message string }

// Error implements error.
func (e *TimeoutError) Error() string { return "timed out: " + e.Message }

// Is makes it a context.DeadlineExceeded.
func (e *TimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// ErrorType names the error where it travels.
func (e *TimeoutError) ErrorType() string { return history.TypeTimeout }

// InterruptedError says that an attempt of an activity that is called with AtMostOnce may have begun, and that nobody knows how far it came. It is not run
// again.
type InterruptedError struct{ Message string }

// Error implements error.
func (e *InterruptedError) Error() string { return "interrupted: " + e.Message }

// ErrorType names the error where it travels.
func (e *InterruptedError) ErrorType() string { return history.TypeInterrupted }

// PayloadTooLargeError says that an input, result or output is over the limit. Keep what is large elsewhere and pass on
// where it lies.
type PayloadTooLargeError struct {
	// What is too large, such as `input of activity "charge"`.
	What string
	// Bytes is the size of the encoded value, Limit what is allowed.
	Bytes, Limit int
}

const payloadTooLarge = "payload too large: %d bytes, limit %d: "

// Error implements error. The text is also how the error travels.
func (e *PayloadTooLargeError) Error() string {
	return fmt.Sprintf(payloadTooLarge, e.Bytes, e.Limit) + e.What
}

// ErrorType names the error where it travels.
func (e *PayloadTooLargeError) ErrorType() string { return history.TypePayloadTooLarge }

// NonRetryable says that trying again does not help.
func (e *PayloadTooLargeError) NonRetryable() bool { return true }

// timerError is a timer that could not be set.
type timerError struct {
	id      int64
	message string
}

// Error implements error.
func (e *timerError) Error() string { return fmt.Sprintf("timer #%d: %s", e.id, e.message) }
