package perdure

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/errdetails"
)

// MaxErrorDetailsBytes is the limit of the details of an error, encoded as JSON: 4 KiB. A failure travels with its causes, which have details of their own,
// in messages and events that others share.
const MaxErrorDetailsBytes = history.MaxFailureDetails

// WithDetails gives an error a value that travels with it, as JSON: from an activity or orchestration that returns the error, or one that wraps it, to whoever
// has called that, and further up as the cause of what they fail with. DetailsOf reads it. The error keeps its text, its type and whether it is tried again;
// retry policies do not look at details. Of an error that has some already the outer ones are found first. A nil error stays nil, and nil details are none.
//
// Details are part of history, and encoded by the hub's codec, where it has one. Those that do not encode as JSON, or have more than MaxErrorDetailsBytes,
// are left out as a whole: the failure says so, and DetailsOf does. The answer to a query is stored nowhere, nor are its errors, and is not encoded.
func WithDetails(err error, details any) error {
	if err == nil || details == nil {
		return err
	}
	return &detailedError{err, errdetails.Encode(details)}
}

type detailedError struct {
	cause   error
	details *errdetails.Details
}

// Error implements error.
func (e *detailedError) Error() string { return e.cause.Error() }

// Unwrap returns the error that has the details.
func (e *detailedError) Unwrap() error { return e.cause }

// As finds the details.
func (e *detailedError) As(target any) bool { return errdetails.As(target, e.details, nil) }

// ErrNoDetails is what DetailsOf returns of an error without details.
var ErrNoDetails = errors.New("perdure: the error has no details")

// DetailsError says why DetailsOf returns no details of an error that was given some.
type DetailsError struct {
	// Problem is why: they were too large, they did not encode, they cannot be decoded here, they do not fit.
	Problem string
	// Err is the error of their decoding, where there was one.
	Err error
}

// Error implements error.
func (e *DetailsError) Error() string {
	return "perdure: the details of the error are not here: " + e.Problem
}

// Unwrap returns the error of the decoding.
func (e *DetailsError) Unwrap() error { return e.Err }

// DetailsOf returns what WithDetails has given an error, or the first error in its tree, outermost first, that was given something: also where that has failed
// an activity, a sub-orchestration, or what these have called (*ActivityError, *SubOrchestrationError), or an instance or update that a client waits for
// (*client.OrchestrationError, *client.UpdateError). It is decoded from JSON into a T; what T has no field for is left out, as encoding/json does.
//
// The error is ErrNoDetails where nothing was given, also of a nil err, and a *DetailsError where something was that is not to be had. An orchestration gets
// the same each time it is replayed.
func DetailsOf[T any](err error) (T, error) {
	var details T
	found, ok := errors.AsType[*errdetails.Details](err)
	switch {
	case !ok:
		return details, ErrNoDetails
	case found.Omitted != "":
		return details, &DetailsError{Problem: found.Omitted}
	}
	if err := json.Unmarshal(found.Doc, &details); err != nil {
		return *new(T), &DetailsError{Problem: fmt.Sprintf("they do not fit %T: %v", details, err), Err: err}
	}
	return details, nil
}

// setDetails notes details in a failure.
func setDetails(f *history.Failure, d *errdetails.Details) {
	if d != nil {
		f.Details, f.DetailsOmitted = history.Inline(d.Doc), d.Omitted
	}
}
