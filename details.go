package perdure

import (
	"errors"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/errdetails"
	"github.com/perdure/perdure/internal/failures"
)

// MaxErrorDetailsBytes is the maximum size of the details of an error, encoded as JSON: 4 KiB.
const MaxErrorDetailsBytes = history.MaxFailureDetailsBytes

// WithErrorDetails attaches details to an error. An activity or orchestration that returns the error, or an error that
// wraps it, passes the details as JSON to its caller. If the caller fails with that error, the details are part of the
// cause of its own error. Read the details with ErrorDetails. The message, the type and the retries of the error do not
// change. If an error has several details, ErrorDetails returns the outermost ones. WithErrorDetails returns err
// unchanged if err or details is nil.
//
// The history stores the details, encoded by the hub's codec if it has one. Details that cannot be encoded as JSON or
// are larger than MaxErrorDetailsBytes are dropped. ErrorDetails then returns a *DetailsError. Errors of queries are
// neither stored nor encoded by the codec.
func WithErrorDetails(err error, details any) error {
	if err == nil || details == nil {
		return err
	}
	return failures.WithDetails(err, details)
}

// ErrNoDetails is returned by ErrorDetails for an error without details.
var ErrNoDetails = errors.New("perdure: error has no details")

// DetailsError is returned by ErrorDetails if the error has details that cannot be read.
type DetailsError struct {
	// Problem describes the reason. The details were too large, could not be encoded, cannot be decoded by this
	// program, or do not match the type.
	Problem string
	// Err is the decoding error, or nil.
	Err error
}

// Error returns a message with the problem.
func (e *DetailsError) Error() string {
	return "perdure: error details are not available: " + e.Problem
}

// Unwrap returns the decoding error, or nil.
func (e *DetailsError) Unwrap() error { return e.Err }

// ErrorDetails returns the details that WithErrorDetails attached to err, or to the first error in its tree, outermost
// first. It also finds the details in an *ActivityError, *SubOrchestrationError, *CallUpdateError,
// *client.OrchestrationError or *client.UpdateError, and in their causes. The details are decoded from JSON into a T;
// unknown fields are ignored.
//
// ErrorDetails returns ErrNoDetails if err is nil or has no details, and a *DetailsError if the details cannot be read.
// The result is the same in each replay.
func ErrorDetails[T any](err error) (T, error) {
	found, ok := errors.AsType[*errdetails.Details](err)
	if !ok {
		return *new(T), ErrNoDetails
	}
	details, problem, err := errdetails.Decode[T](found)
	if problem != "" {
		return details, &DetailsError{Problem: problem, Err: err}
	}
	return details, nil
}
