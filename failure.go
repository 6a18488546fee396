package perdure

import (
	"fmt"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/failures"
	"github.com/perdure/perdure/internal/replay"
)

// NonRetryable marks an error of an activity or orchestration so that no retry policy retries it. An error that wraps a
// marked error, or joins it with others, is also marked. An error type is marked if it has a method NonRetryable() bool
// that returns true. NonRetryable returns nil if err is nil.
func NonRetryable(err error) error {
	if err == nil {
		return nil
	}
	return failures.NonRetryable(err)
}

// failureOf converts an error to the failure that the history stores.
func failureOf(err error) *history.Failure {
	return failures.Errors{Describe: describe, Called: calledFailure}.Of(err)
}

// describe describes an error of this package. The error can be a nil pointer, because fmt.Errorf can wrap a nil
// pointer together with other errors.
func describe(err error) (d failures.Description) {
	switch e := err.(type) { //nolint:errorlint // one layer at a time
	case *CancelledError:
		d.Kind = failures.Cancel
		if e != nil {
			d.Message, d.Reason, d.CancelOutcome = e.Message, string(e.Reason), string(e.CancelOutcome)
		}
	case *TimeoutError:
		d.Kind = failures.Engine
		if e != nil {
			d.Message = e.Message
		}
	case *InterruptedError:
		d.Kind = failures.Engine
		if e != nil {
			d.Message = e.Message
		}
	case *ActivityError:
		d.Kind = failures.Call
		d.NonRetryable = e != nil && e.NonRetryable
	case *SubOrchestrationError:
		d.Kind = failures.Call
		d.NonRetryable = e != nil && e.NonRetryable
	case *CallUpdateError:
		d.Kind = failures.Update
	}
	return d
}

// calledFailure returns the failure of the called activity, sub-orchestration or update handler.
func calledFailure(err error) *history.Failure {
	switch e := err.(type) { //nolint:errorlint // one layer at a time
	case *ActivityError:
		return e.failure()
	case *SubOrchestrationError:
		return e.failure()
	case *CallUpdateError:
		return e.Cause
	default:
		return nil
	}
}

// engineErrorIn returns the first engine error in a chain of causes, or nil if the chain contains no engine error.
func engineErrorIn(f *history.Failure) error {
	for ; f != nil; f = f.Cause {
		if err := engineError(f); err != nil {
			return err
		}
	}
	return nil
}

// engineError returns the engine error that a failure stores, or nil for an error of user code.
func engineError(f *history.Failure) error {
	switch f.Type {
	case history.TypeTimeout:
		return &TimeoutError{Message: f.Message}
	case history.TypeInterrupted:
		return &InterruptedError{Message: f.Message}
	case history.TypeCancelled:
		return newCancelledError(f)
	case history.TypePayloadTooLarge:
		name, bytes, limit := failures.ParseTooLarge(f.Message)
		return &PayloadTooLargeError{Name: name, Bytes: bytes, Limit: limit}
	default:
		return nil
	}
}

func newCancelledError(f *history.Failure) *CancelledError {
	return &CancelledError{
		Reason: CancelReason(f.Reason), Message: f.Message, CancelOutcome: CancelOutcome(f.CancelOutcome),
	}
}

// errorOf returns the error of a settled task, or nil if the task succeeded.
func errorOf(t *replay.Task) error {
	f := t.Failure()
	switch {
	case f == nil:
		return nil
	case t.Cancellation() != nil:
		return cancelledError(t.Cancellation())
	case t.IsCancelled():
		e := newCancelledError(f)
		if c := t.EndedWith(); c != nil {
			e.scope = cancelledError(c)
		}
		return e
	case t.InstanceID() != "": // even while the task is a timer for the next attempt
		return newSubOrchestrationError(t.Name(), t.InstanceID(), t.DecodedFailure())
	case t.Kind() == history.UpdateSent:
		return newCallUpdateError(t, t.DecodedFailure())
	case t.ReceiverID() != "":
		return &RaiseEventError{Event: t.Name(), InstanceID: t.ReceiverID(), Type: f.Type, Message: f.Message}
	case t.Kind() == history.TimerCreated:
		return &timerError{id: t.ID(), message: f.Message}
	default:
		return newActivityError(t.Name(), t.ID(), t.DecodedFailure())
	}
}

// timerError means that a timer could not be set.
type timerError struct {
	id      int64
	message string
}

// Error implements error.
func (e *timerError) Error() string { return fmt.Sprintf("timer #%d: %s", e.id, e.message) }
