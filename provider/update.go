package provider

import (
	"time"

	"github.com/perdure/perdure/history"
)

// AnswerLife is how long the answer to an update is kept.
const AnswerLife = 30 * 24 * time.Hour

// UpdateOutcome is what has become of an update. The words are part of the format.
type UpdateOutcome string

// The outcomes of an update.
const (
	UpdateCompleted UpdateOutcome = "completed" // its handler has returned
	UpdateRejected  UpdateOutcome = "rejected"  // it was not accepted, and has changed nothing
	UpdateLeft      UpdateOutcome = "left"      // it was accepted, and its execution ended before its handler returned
	UpdateForgotten UpdateOutcome = "forgotten" // it was taken, and what came of it is not known any more
)

// UpdateAnswer is what whoever asked for an update is told (R27).
type UpdateAnswer struct {
	InstanceID string
	// StartID is that of the instance's start: the answer is about this life of the id.
	StartID string
	// UpdateID is the id of the update, and Name its name.
	UpdateID, Name string
	Outcome        UpdateOutcome
	// Result is what its handler returned. Error is what that failed with, or why the update was rejected.
	Result history.Payload
	Error  *history.Failure
	// Reason is, of one that was rejected, one of history.UpdateXxx; of one that was left, that for which what was
	// outstanding was cancelled (history.TerminalReason).
	Reason string
	// ExecutionID is the execution that has it in its history, EventID the event that says so; of one that is forgotten,
	// the execution that knows its id, and 0.
	ExecutionID string
	EventID     int64
}

// AnswerOf returns the answer that an UpdateRejected or an UpdateCompleted of an execution gives. A result that lies in a store of large payloads has a copy
// of its own (Mail): the answer may outlive the execution.
func AnswerOf(x Origin, e *history.Event) UpdateAnswer {
	a := UpdateAnswer{
		InstanceID: x.InstanceID, StartID: x.StartID, UpdateID: e.EventID, Name: e.Name, Outcome: UpdateCompleted, Error: e.Error,
		Reason: e.Reason, ExecutionID: x.ExecutionID, EventID: e.ID,
		Result: mailed(e.Result, MessageUpdate, StartID(x.ExecutionID, e.ID)),
	}
	switch {
	case e.Kind == history.UpdateRejected:
		a.Outcome = UpdateRejected
	case e.IsLeft():
		a.Outcome = UpdateLeft
	}
	return a
}

// AnswersAgain returns the answers to updates that have come again, by their ids: those that a history has, and that they
// are forgotten for the others, which an execution before it has taken. An update whose handler has not returned is not to
// be among them.
func AnswersAgain(o *Orchestration, repeated map[string]string) []UpdateAnswer {
	x := o.Origin()
	answers := make([]UpdateAnswer, 0, len(repeated))
	found := map[string]bool{}
	for i := range o.Segments {
		for j := range o.Segments[i].Events {
			e := &o.Segments[i].Events[j]
			if e.Kind != history.UpdateRejected && e.Kind != history.UpdateCompleted {
				continue
			}
			if _, asked := repeated[e.EventID]; asked && !found[e.EventID] {
				answers = append(answers, AnswerOf(x, e))
				found[e.EventID] = true
			}
		}
	}
	for id, name := range repeated {
		if !found[id] {
			answers = append(answers, UpdateAnswer{
				InstanceID: x.InstanceID, StartID: x.StartID, UpdateID: id, Name: name, Outcome: UpdateForgotten, ExecutionID: x.ExecutionID,
			})
		}
	}
	return answers
}
