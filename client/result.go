package client

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/errdetails"
)

// OrchestrationError is the failure of an orchestration, returned by Result. errors.As finds a *perdure.TimeoutError,
// *perdure.CancelledError or *perdure.PayloadTooLargeError in it if that error is the root cause.
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
		reason := perdure.CancelReason(e.Failure.Reason)
		what = (&perdure.CancelledError{Reason: reason, Message: e.Failure.Message}).Error()
	}
	return fmt.Sprintf("orchestration %q (instance %q): %s", e.Orchestration, e.InstanceID, what)
}

// As finds the details of the error. Use perdure.ErrorDetails to read them.
func (e *OrchestrationError) As(target any) bool { return errdetails.As(target, nil, &e.Failure) }

// Unwrap returns the engine error that caused the failure, or nil. It searches the causes like
// perdure.ActivityError.Unwrap.
func (e *OrchestrationError) Unwrap() error {
	return (&perdure.ActivityError{Cause: &e.Failure}).Unwrap()
}

// Result returns the output of a completed orchestration as a T. The Status must be from Client.Status or Client.Wait.
//
// If the orchestration failed or was cancelled or terminated, Result returns an *OrchestrationError. For a cancelled
// orchestration, errors.As finds the *perdure.CancelledError. Result returns a *perdure.PayloadError if the client
// cannot decode the output (Status.EncodedOutput). It also returns an error if the instance has not ended or is being
// purged, or if the output does not fit T.
func Result[T any](s Status) (T, error) {
	var out T
	switch {
	case s.Status == "":
		return out, errors.New("client: result: empty Status; check the error that was returned with it")
	case !s.Status.Terminal():
		return out, fmt.Errorf("client: result: instance %q has not ended: status is %s", s.InstanceID, s.Status)
	case s.Status == StatusDeleting:
		return out, fmt.Errorf("client: result: instance %q is being purged and has no result", s.InstanceID)
	case s.Failure != nil:
		return out, &OrchestrationError{InstanceID: s.InstanceID, Orchestration: s.Orchestration, Failure: *s.Failure}
	case s.EncodedOutput != nil && s.EncodedOutput.cause != nil:
		return out, fmt.Errorf("client: result: %w", s.EncodedOutput.cause)
	case s.EncodedOutput != nil:
		return out, fmt.Errorf("client: result: %w", &perdure.PayloadError{
			Payload: perdure.PayloadInfo{
				InstanceID: s.InstanceID, ExecutionID: s.ExecutionID, Kind: perdure.PayloadOrchestrationOutput,
				Name: s.Orchestration,
			},
			Codec: s.EncodedOutput.Codec, Err: perdure.ErrUnknownCodec,
		})
	case s.Output == nil:
		return out, fmt.Errorf("client: result: status of instance %q has no output; use Status or Wait, not List",
			s.InstanceID)
	}
	if err := json.Unmarshal(s.Output, &out); err != nil {
		return out, fmt.Errorf("client: result: instance %q: decode output as %T: %w", s.InstanceID, out, err)
	}
	return out, nil
}
