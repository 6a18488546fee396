package perdure

import (
	"cmp"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/errdetails"
)

// NonRetryable marks an error of an activity or orchestration so that no retry policy retries it. An error that wraps a
// marked error, or joins it with others, is marked too. An error type can mark itself with a method NonRetryable() bool
// that returns true. NonRetryable returns nil if err is nil.
func NonRetryable(err error) error {
	if err == nil {
		return nil
	}
	return &nonRetryableError{err}
}

type nonRetryableError struct{ cause error }

// Error implements error.
func (e *nonRetryableError) Error() string { return e.cause.Error() }

// Unwrap returns the marked error.
func (e *nonRetryableError) Unwrap() error { return e.cause }

// NonRetryable implements the marker.
func (e *nonRetryableError) NonRetryable() bool { return true }

const (
	// maxCauses bounds the chain of causes that travels.
	maxCauses = 8
	// maxTypeBytes bounds the name of an error's type.
	maxTypeBytes = 256
	// maxMessageBytes bounds each message in it: a failure must fit where a payload does.
	maxMessageBytes = 16 << 10
)

// bounded cuts a text that is too long to travel.
func bounded(s string) string {
	if len(s) <= maxMessageBytes {
		return s
	}
	return strings.ToValidUTF8(s[:maxMessageBytes], "") + "…"
}

// failureOf is an error as it travels. Its type is that of the outermost error in the chain that has one of its own;
// what that one wraps is the cause.
func failureOf(err error) *history.Failure {
	f := failureOfDepth(err, maxCauses)
	f.Joined = joinedIn(err, f)
	return f
}

func failureOfDepth(err error, depth int) *history.Failure {
	name, details, named := outermostNamed(err)
	f := &history.Failure{Type: boundedType(name), Message: bounded(err.Error()), NonRetryable: isNonRetryable(err)}
	setDetails(f, details)
	unframe := func(message string) { // the text of the very error is made of its message and more
		if err == named { //nolint:errorlint // not of one that wraps it
			f.Message = bounded(message)
		}
	}
	switch e := named.(type) { //nolint:errorlint // outermostNamed has unwrapped it
	case nil:
		return f
	case *CancelledError:
		f.Reason, f.CancelOutcome = string(e.Reason), string(e.CancelOutcome)
		unframe(e.Message)
	case *TimeoutError:
		unframe(e.Message)
	case *InterruptedError:
		unframe(e.Message)
	case *ActivityError:
		f.Cause = shallow(e.failure(), depth)
		return f
	case *SubOrchestrationError:
		f.Cause = shallow(e.failure(), depth)
		return f
	case *CallUpdateError:
		f.Cause = shallow(e.Cause, depth)
		return f
	}
	if causes := unwrap(named); len(causes) > 0 && depth > 0 {
		f.Cause = failureOfDepth(causes[0], depth-1)
	}
	return f
}

// shallow copies a chain of causes down to a depth: each orchestration that a failure passes through adds to it.
func shallow(f *history.Failure, depth int) *history.Failure {
	if f == nil || depth <= 0 {
		return nil
	}
	c := *f
	c.Cause = shallow(f.Cause, depth-1)
	return &c
}

// outermostNamed finds the first error of a tree, outermost first, that has a name; TypeError and nil when none has. Of
// what is joined, a cancel matters least: what failed beside it needs attention. Details are those of the error itself,
// or of what wraps it; where none has a name, the first in the tree.
func outermostNamed(err error) (name string, details *errdetails.Details, named error) {
	if name, ok := errorName(err); ok {
		return name, detailsOf(err), err
	}
	details = detailsOf(err)
	causes := unwrap(err)
	if slices.ContainsFunc(causes, isMore) {
		causes = slices.DeleteFunc(causes, func(err error) bool { return !isMore(err) })
	}
	var inner *errdetails.Details
	for _, cause := range causes {
		name, of, named := outermostNamed(cause)
		if named != nil {
			return name, cmp.Or(details, of), named
		}
		inner = cmp.Or(inner, of)
	}
	return history.TypeError, cmp.Or(details, inner), nil
}

// detailsOf are the details that this very error has. What failed a call comes with its own, as a cause.
func detailsOf(err error) (d *errdetails.Details) {
	switch e := err.(type) { //nolint:errorlint // one layer at a time
	case *ActivityError, *SubOrchestrationError:
	case interface{ As(target any) bool }:
		e.As(&d)
	}
	return d
}

// isMore reports whether an error is more than a cancel.
func isMore(err error) bool {
	if _, ok := err.(*CancelledError); ok { //nolint:errorlint // one layer at a time
		return false
	}
	if _, named := errorName(err); named {
		return true
	}
	causes := unwrap(err)
	return len(causes) == 0 || slices.ContainsFunc(causes, isMore)
}

func unwrap(err error) []error {
	switch e := err.(type) { //nolint:errorlint // one layer at a time
	case interface{ Unwrap() []error }:
		return slices.DeleteFunc(slices.Clone(e.Unwrap()), func(err error) bool { return err == nil })
	case interface{ Unwrap() error }:
		if cause := e.Unwrap(); cause != nil {
			return []error{cause}
		}
	}
	return nil
}

// errorName is what an error says its type is, or its Go type's name without pointer, package and type arguments. The
// wrappers of the standard library, and this package's marker, have no name of their own.
func errorName(err error) (string, bool) {
	if e, ok := err.(interface{ ErrorType() string }); ok {
		if name := e.ErrorType(); name != "" {
			return name, true
		}
	}
	t := reflect.TypeOf(err)
	for t.Kind() == reflect.Pointer && t.Name() == "" {
		t = t.Elem()
	}
	if t.Name() == "" || t == reflect.TypeFor[nonRetryableError]() || t == reflect.TypeFor[detailedError]() ||
		anonymous(t) {
		return "", false
	}
	name, _, _ := strings.Cut(t.Name(), "[")
	if slices.Contains(reserved, name) {
		name = path.Base(t.PkgPath()) + "." + name
	}
	return name, true
}

// anonymous reports whether a type is one of those behind errors.New, errors.Join and fmt.Errorf.
func anonymous(t reflect.Type) bool {
	return t.PkgPath() == "errors" || t.PkgPath() == "fmt"
}

// reserved are the types of the engine's own failures: a Go type that is called the same travels with its package's
// name.
var reserved = []string{
	history.TypeError, history.TypePanic, history.TypeGoexit, history.TypeTimeout, history.TypeInterrupted,
	history.TypeCancelled,
	history.TypePayloadTooLarge, history.TypePayloadUnreadable, history.TypeEncode, history.TypeDecode,
}

// isNonRetryable reports whether an error is marked, itself or one that it wraps or joins.
func isNonRetryable(err error) bool {
	if e, ok := err.(interface{ NonRetryable() bool }); ok && e.NonRetryable() {
		return true
	}
	switch e := err.(type) { //nolint:errorlint // one layer at a time
	case *ActivityError:
		if e.NonRetryable {
			return true
		}
	case *SubOrchestrationError:
		if e.NonRetryable {
			return true
		}
	}
	return slices.ContainsFunc(unwrap(err), isNonRetryable)
}

// engineErrorIn is the first of the engine's own errors in a chain of causes; nil when there is none.
func engineErrorIn(f *history.Failure) error {
	for ; f != nil; f = f.Cause {
		if err := engineError(f); err != nil {
			return err
		}
	}
	return nil
}

// engineError is the engine's own error that a failure stands for; nil when it stands for a user's.
func engineError(f *history.Failure) error {
	switch f.Type {
	case history.TypeTimeout:
		return &TimeoutError{Message: f.Message}
	case history.TypeInterrupted:
		return &InterruptedError{Message: f.Message}
	case history.TypeCancelled:
		return &CancelledError{
			Reason: CancelReason(f.Reason), Message: f.Message, CancelOutcome: CancelOutcome(f.CancelOutcome),
		}
	case history.TypePayloadTooLarge:
		return parsePayloadTooLarge(f.Message)
	default:
		return nil
	}
}

// parsePayloadTooLarge reads the error's own text, which may be wrapped in more.
func parsePayloadTooLarge(message string) error {
	e := &PayloadTooLargeError{Name: message}
	head, _, _ := strings.Cut(payloadTooLarge, "%")
	if i := strings.Index(message, head); i >= 0 {
		message = message[i:]
	}
	if n, err := fmt.Sscanf(message, payloadTooLarge, &e.Bytes, &e.Limit); err == nil && n == 2 {
		e.Name = strings.SplitN(message, ": ", 3)[2]
	}
	return e
}
