package client

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/errdetails"
)

// OrchestrationError is the failure of an orchestration, as Result returns it. errors.As finds a *perdure.TimeoutError,
// *perdure.CancelledError or *perdure.PayloadTooLargeError in it where that is the root of the failure.
type OrchestrationError struct {
	InstanceID    string
	Orchestration string
	// Failure holds the type, message, details and causes of the error that the orchestration returned.
	Failure history.Failure
}

// Error implements error.
func (e *OrchestrationError) Error() string {
	what := e.Failure.Type + ": " + e.Failure.Message
	switch e.Failure.Type {
	case history.TypeError:
		what = e.Failure.Message
	case history.TypeCancelled:
		what = (&perdure.CancelledError{Reason: perdure.CancelReason(e.Failure.Reason), Message: e.Failure.Message}).Error()
	}
	return fmt.Sprintf("orchestration %q (instance %q): %s", e.Orchestration, e.InstanceID, what)
}

// As finds the details that the error came with: perdure.DetailsOf asks for them.
func (e *OrchestrationError) As(target any) bool { return errdetails.As(target, nil, &e.Failure) }

// Unwrap returns the engine's own error that the orchestration failed with, if it was one. It searches causes as for an
// activity's failure.
func (e *OrchestrationError) Unwrap() error {
	return (&perdure.ActivityError{Cause: &e.Failure}).Unwrap()
}

// Result returns the output of a completed orchestration as a T, or the *OrchestrationError of one that failed, or was
// cancelled or terminated: for a cancelled one, errors.As finds the *perdure.CancelledError. An output that the client
// cannot show (Status.OutputSealed) is a *perdure.PayloadError. It requires a Status from
// Status or Wait of an instance that is over and not being purged; for any other Status, and for an output that does
// not fit T, it returns an error too.
func Result[T any](s Status) (T, error) {
	var out T
	switch {
	case s.Status == "":
		return out, errors.New("client: result: this Status is of no instance: look at the error that came with it")
	case !s.Status.Terminal():
		return out, fmt.Errorf("client: result: instance %q is not over, but %s", s.InstanceID, s.Status)
	case s.Status == StatusDeleting:
		return out, fmt.Errorf("client: result: instance %q is being purged: there is no result any more", s.InstanceID)
	case s.Failure != nil:
		return out, &OrchestrationError{InstanceID: s.InstanceID, Orchestration: s.Orchestration, Failure: *s.Failure}
	case s.OutputSealed != nil && s.OutputSealed.cause != nil:
		return out, fmt.Errorf("client: result: %w", s.OutputSealed.cause)
	case s.OutputSealed != nil:
		return out, fmt.Errorf("client: result: %w", &perdure.PayloadError{
			Payload: perdure.PayloadInfo{InstanceID: s.InstanceID, ExecutionID: s.ExecutionID, Kind: perdure.PayloadOrchestrationOutput, Name: s.Orchestration},
			Codec:   s.OutputSealed.Codec, Err: perdure.ErrCodecUnknown,
		})
	case s.Output == nil:
		return out, fmt.Errorf("client: result: the status of instance %q came without it: read it with Status or Wait, not List", s.InstanceID)
	}
	if err := json.Unmarshal(s.Output, &out); err != nil {
		return out, fmt.Errorf("client: result: instance %q: the output does not fit %T: %w", s.InstanceID, out, err)
	}
	return out, nil
}
