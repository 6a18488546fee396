package cli

// openError reports that the hub itself could not be opened.
type OpenError struct{ Cause error }

// Error implements error.
func (e *OpenError) Error() string { return e.Cause.Error() }

// Unwrap returns the cause.
func (e *OpenError) Unwrap() error { return e.Cause }

// The exit codes of wait, and of the commands that wait for an instance. Most commands have only the first two.
const (
	CodeOK        = 0
	CodeError     = 1
	CodeFailed    = 2
	CodeCancelled = 3
	CodeTimeout   = 4
)

// exit is an error that sets the exit code. The text, if any, is printed on stderr.
type Exit struct {
	Code int
	Text string
}

// Error implements error.
func (e *Exit) Error() string { return e.Text }
