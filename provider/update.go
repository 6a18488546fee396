package provider

import (
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
	// UpdateResultExpired means that the update was accepted earlier, and that its result is no longer known.
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
	// ExecutionID is the execution that has the update in its history, and EventID is the event of its outcome. If the
	// result has expired, EventID is 0.
	ExecutionID string
	EventID     int64
}

// UpdateResultOf returns the result in an UpdateRejected or UpdateCompleted event. A result in the payload store is
// referred to by the key of its copy (EachMessagePayload), because the update result can outlive the execution.
func UpdateResultOf(x Origin, e *history.Event) UpdateResult {
	a := UpdateResult{
		InstanceID: x.InstanceID, StartID: x.StartID, UpdateID: e.EventID, Name: e.Name, Outcome: UpdateCompleted,
		Error:  e.Error,
		Reason: e.Reason, ExecutionID: x.ExecutionID, EventID: e.ID,
		Result: sentPayload(e.Result, MessageUpdate, StartID(x.ExecutionID, e.ID)),
	}
	switch {
	case e.Kind == history.UpdateRejected:
		a.Outcome = UpdateRejected
	case e.IsAbortedUpdate():
		a.Outcome = UpdateAborted
	}
	return a
}

// RepeatedUpdateResults returns the results of updates that were sent again. Keys of repeated are update IDs, and
// values are names. Updates without a result in this history are UpdateResultExpired. Do not pass updates whose handler
// has not returned.
func RepeatedUpdateResults(o *Orchestration, repeated map[string]string) []UpdateResult {
	x := o.Origin()
	answers := make([]UpdateResult, 0, len(repeated))
	found := map[string]bool{}
	for i := range o.Segments {
		for j := range o.Segments[i].Events {
			e := &o.Segments[i].Events[j]
			if e.Kind != history.UpdateRejected && e.Kind != history.UpdateCompleted {
				continue
			}
			if _, asked := repeated[e.EventID]; asked && !found[e.EventID] {
				answers = append(answers, UpdateResultOf(x, e))
				found[e.EventID] = true
			}
		}
	}
	for id, name := range repeated {
		if !found[id] {
			answers = append(answers, UpdateResult{
				InstanceID: x.InstanceID, StartID: x.StartID, UpdateID: id, Name: name, Outcome: UpdateResultExpired,
				ExecutionID: x.ExecutionID,
			})
		}
	}
	return answers
}
