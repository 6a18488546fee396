package cli

import "fmt"

// Exit codes of the commands that wait for an instance, such as wait. Other commands use only CodeOK and CodeError.
const (
	CodeOK        = 0
	CodeError     = 1
	CodeFailed    = 2
	CodeCancelled = 3
	CodeTimeout   = 4
)

// ExitError is an error that sets the exit code. The text, if any, is printed on stderr.
type ExitError struct {
	Code int
	Text string
}

// Error implements error.
func (e *ExitError) Error() string { return e.Text }

// Exitf returns an ExitError with a formatted text.
func Exitf(code int, format string, args ...any) *ExitError {
	return &ExitError{Code: code, Text: fmt.Sprintf(format, args...)}
}

// OpenError reports that the hub could not be opened.
type OpenError struct{ Cause error }

// Error implements error.
func (e *OpenError) Error() string { return e.Cause.Error() }

// Unwrap returns the cause.
func (e *OpenError) Unwrap() error { return e.Cause }
