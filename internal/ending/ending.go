// Package ending decides how an execution ends when the function of its orchestration returns an error: it continues as
// new, ends as cancelled, or fails.
package ending

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/errtree"
	"github.com/perdure/perdure/internal/replay"
)

// continueAsNewError is the error of perdure.ContinueAsNew.
type continueAsNewError struct {
	execution *replay.Context
	input     json.RawMessage
}

// Error implements error, for code that logs it and for other executions.
func (e *continueAsNewError) Error() string {
	return fmt.Sprintf("perdure: ContinueAsNew: return this error from execution %s of instance %q",
		e.execution.ExecutionID(), e.execution.InstanceID())
}

// ErrorType returns the type name that failures store if the instance does not continue as new.
func (e *continueAsNewError) ErrorType() string { return history.TypeError }

// ContinueAsNew returns the error with which the execution continues as new.
func ContinueAsNew(c *replay.Context, input json.RawMessage) error {
	return &continueAsNewError{execution: c, input: input}
}

// IsContinueAsNew reports whether err is an error of ContinueAsNew, or wraps only such errors. It is false for nil.
func IsContinueAsNew(err error) bool {
	if err == nil {
		return false
	}
	return errtree.Every(err, func(err error) bool {
		_, ok := err.(*continueAsNewError) //nolint:errorlint // one layer at a time
		return ok
	})
}

// ContinuesOn reports whether the instance continues as new when the orchestration returns err.
func ContinuesOn(c *replay.Context, err error) bool {
	orders, rest := split(c, err)
	return len(orders) > 0 && len(rest) == 0 && !areDifferent(orders) && !c.IsInstanceCancelled()
}

// Of returns the end of an execution whose orchestration returned err. isOwnCancel reports whether an error consists
// only of the error of the cancelled scope. If the execution fails, failed is its error, and the caller sets
// replay.Ending.Error.
func Of(c *replay.Context, err error, isOwnCancel func(error) bool) (end replay.Ending, failed error) {
	orders, rest := split(c, err)
	switch {
	case c.Cancellation() != nil && !slices.ContainsFunc(rest, func(err error) bool { return !isOwnCancel(err) }):
		return replay.Ending{Kind: history.OrchestrationCancelled}, nil // takes precedence over continuing as new
	case len(orders) == 0:
		// an ordinary failure
	case len(rest) > 0:
		err = fmt.Errorf("perdure: ContinueAsNew: returned together with another error: %w", errors.Join(rest...))
	case areDifferent(orders):
		err = errors.New("perdure: ContinueAsNew: errors of several calls returned; return only one")
	default:
		return replay.Ending{Kind: history.OrchestrationContinuedAsNew, Input: orders[0].input}, nil
	}
	return replay.Ending{Kind: history.OrchestrationFailed}, err
}

// areDifferent reports whether the errors are from different calls of ContinueAsNew.
func areDifferent(orders []*continueAsNewError) bool {
	return slices.ContainsFunc(orders, func(e *continueAsNewError) bool { return e != orders[0] })
}

// split returns the errors of ContinueAsNew for this execution, and the largest parts of err that contain no such
// error.
func split(c *replay.Context, err error) (orders []*continueAsNewError, rest []error) {
	return errtree.Split(err, func(err error) (*continueAsNewError, bool) {
		e, ok := err.(*continueAsNewError) //nolint:errorlint // one layer at a time
		return e, ok && e.execution.SameExecution(c)
	})
}
