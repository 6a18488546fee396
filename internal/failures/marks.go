package failures

import "github.com/perdure/perdure/internal/errdetails"

// NonRetryable returns an error that wraps err and has a method NonRetryable that returns true.
func NonRetryable(err error) error { return &nonRetryableError{err} }

type nonRetryableError struct{ cause error }

// Error implements error.
func (e *nonRetryableError) Error() string { return e.cause.Error() }

// Unwrap returns the marked error.
func (e *nonRetryableError) Unwrap() error { return e.cause }

// NonRetryable marks the error.
func (e *nonRetryableError) NonRetryable() bool { return true }

// WithDetails returns an error that wraps err and has details.
func WithDetails(err error, details any) error {
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

// As returns the details.
func (e *detailedError) As(target any) bool { return errdetails.As(target, e.details, nil) }
