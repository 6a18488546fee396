package provider

import (
	"fmt"
	"time"

	"github.com/perdure/perdure/history"
)

// UpdateResultRetention is the time for which the result of an update is kept.
const UpdateResultRetention = 30 * 24 * time.Hour

// UpdateOutcome is the outcome of an update. The strings are part of the stored format.
type UpdateOutcome string

// The outcomes of an update.
const (
	// UpdateCompleted means that the handler returned.
	UpdateCompleted UpdateOutcome = "completed"
	// UpdateRejected means that the update was not accepted and has changed nothing.
	UpdateRejected UpdateOutcome = "rejected"
	// UpdateAborted means that the update was accepted, but its execution ended before the handler returned.
	UpdateAborted UpdateOutcome = "left"
	// UpdateResultExpired means that the update was accepted earlier, and that its result has expired.
	UpdateResultExpired UpdateOutcome = "forgotten"
)

// UpdateResult is the result of an update (R27).
type UpdateResult struct {
	InstanceID string
	// StartID is the StartID of the instance. It identifies the incarnation.
	StartID string
	// UpdateID is the ID of the update, and Name is its name.
	UpdateID, Name string
	Outcome        UpdateOutcome
	// Result is the result of the handler. Error is the error of the handler, or the reason of a rejection.
	Result history.Payload
	Error  *history.Failure
	// Reason is one of the history.Rejected constants if the update was rejected. If its execution ended first, Reason
	// is the cancel reason of the outstanding work (history.TerminalReason).
	Reason string
	// ExecutionID is the execution whose history contains the update, and EventID is the event of the outcome. If the
	// result has expired, EventID is 0.
	ExecutionID string
	EventID     int64
}

// Failure returns the failure that the sending orchestration receives, or nil if the handler returned a result.
func (a *UpdateResult) Failure() *history.Failure {
	switch {
	case a.Outcome == UpdateRejected:
		f := &history.Failure{
			Type: history.TypeUpdateRejected, Reason: a.Reason, Cause: a.Error,
			Message: "update was rejected",
		}
		if a.Error != nil {
			f.Message = a.Error.Message
		}
		return f
	case a.Outcome == UpdateAborted:
		return &history.Failure{
			Type: history.TypeUpdateAborted,
			Message: fmt.Sprintf("execution %s of instance %q ended before the update's handler returned (%s)",
				a.ExecutionID, a.InstanceID, a.Reason),
		}
	case a.Outcome == UpdateResultExpired:
		return &history.Failure{
			Type:    history.TypeUpdateResultExpired,
			Message: "update was accepted earlier, and its result is no longer stored",
		}
	case a.Error != nil:
		return &history.Failure{Type: history.TypeUpdateFailed, Message: a.Error.Message, Cause: a.Error}
	default:
		return nil
	}
}
