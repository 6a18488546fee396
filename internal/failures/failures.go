// Package failures converts the errors of user code to the failures that the history stores.
package failures

import (
	"cmp"
	"slices"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/errdetails"
	"github.com/perdure/perdure/internal/errtree"
)

// Errors describes the errors of package perdure, which this package cannot import. Its functions inspect an error
// itself, and not the errors that it wraps.
type Errors struct {
	// Describe describes an error. It returns the zero Description for errors of other packages.
	Describe func(err error) Description
	// Called returns the failure of the called code, for an error of kind Call or Update.
	Called func(err error) *history.Failure
}

// Description describes an error of package perdure.
type Description struct {
	Kind Kind
	// Message is the text of the error without the prefix that its Error method adds.
	Message string
	// Reason and CancelOutcome are the reason and the outcome of a cancellation.
	Reason, CancelOutcome string
	NonRetryable          bool
}

// Kind is the kind of an error of package perdure.
type Kind int

// The kinds of errors. Other errors have kind 0.
const (
	// Engine is an error that the engine causes, such as a timeout.
	Engine Kind = iota + 1
	Cancel
	// Call is the failure of an activity or an orchestration, and Update is the failure of an update.
	Call
	Update
)

// maxCauses limits the chain of causes of a failure.
const maxCauses = 8

// Of returns the failure of an error. The failure has the type of the outermost error in the tree with a type name. Its
// cause is the error that this error wraps.
func (known Errors) Of(err error) *history.Failure {
	f := known.failure(err, maxCauses)
	f.Joined = known.joined(err, f)
	return f
}

func (known Errors) failure(err error, depth int) *history.Failure {
	name, details, named := known.outermost(err)
	f := &history.Failure{
		Type: truncateType(name), Message: Truncate(err.Error()), NonRetryable: errtree.Any(err, known.isNonRetryable),
	}
	details.AddTo(f)
	if named == nil {
		return f
	}

	d := known.Describe(named)
	f.Reason, f.CancelOutcome = d.Reason, d.CancelOutcome
	switch d.Kind {
	case Call, Update:
		f.Cause = limitCauses(known.Called(named), depth)
		return f
	case Engine, Cancel:
		if err == named { //nolint:errorlint // the error itself, not a wrapper
			f.Message = Truncate(d.Message)
		}
	}
	if causes := errtree.Causes(named); len(causes) > 0 && depth > 0 {
		f.Cause = known.failure(causes[0], depth-1)
	}
	return f
}

// limitCauses copies a failure with a limited chain of causes. Each orchestration that a failure passes adds a cause.
func limitCauses(f *history.Failure, depth int) *history.Failure {
	if f == nil || depth <= 0 {
		return nil
	}
	c := *f
	c.Cause = limitCauses(f.Cause, depth-1)
	return &c
}

// outermost returns the outermost error of a tree that has a type name, and the name. If there is none, it returns
// history.TypeError and nil. It ignores cancellations that are joined with other errors. The details belong to the
// error or to an error that wraps it. If no error has a name, outermost returns the first details in the tree.
func (known Errors) outermost(err error) (name string, details *errdetails.Details, named error) {
	if name, ok := typeName(err); ok {
		return name, known.details(err), err
	}
	details = known.details(err)
	causes := errtree.Causes(err)
	if slices.ContainsFunc(causes, known.isMoreThanCancel) {
		causes = slices.DeleteFunc(causes, func(err error) bool { return !known.isMoreThanCancel(err) })
	}
	var inner *errdetails.Details
	for _, cause := range causes {
		name, of, named := known.outermost(cause)
		if named != nil {
			return name, cmp.Or(details, of), named
		}
		inner = cmp.Or(inner, of)
	}
	return history.TypeError, cmp.Or(details, inner), nil
}

// details returns the details of the error itself. The details of a failed call belong to its failure, which is the
// cause.
func (known Errors) details(err error) (d *errdetails.Details) {
	if e, ok := err.(interface{ As(target any) bool }); ok && known.Describe(err).Kind != Call {
		e.As(&d)
	}
	return d
}

// isMoreThanCancel reports whether a tree has an error that is not a cancellation.
func (known Errors) isMoreThanCancel(err error) bool {
	if known.Describe(err).Kind == Cancel {
		return false
	}
	if _, named := typeName(err); named {
		return true
	}
	causes := errtree.Causes(err)
	return len(causes) == 0 || slices.ContainsFunc(causes, known.isMoreThanCancel)
}

// isNonRetryable reports whether the error itself is marked as not retryable.
func (known Errors) isNonRetryable(err error) bool {
	e, ok := err.(interface{ NonRetryable() bool })
	return ok && e.NonRetryable() || known.Describe(err).NonRetryable
}
