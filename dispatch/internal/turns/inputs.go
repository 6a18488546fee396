package turns

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// inputsOf adds to events those of history that a message brings. A message for another execution, or for another instance that
// had the id before, brings none; one that names none is for whichever is the current one.
//
// What is dealt with by the attempts of activities is no input.
func (x *execution) inputsOf(events []history.Event, m *provider.InboxMessage, attempts *attemptLedger) []history.Event {
	if !x.isFor(m) {
		return events
	}
	switch m.Kind {
	case provider.MessageActivityOutcomes, provider.MessageActivityAttempts:
		return outcomes(events, m, attempts)
	case provider.MessageTimerFired:
		return x.fired(events, m, attempts)
	case provider.MessageEventRaised:
		return append(events, requested(history.ExternalEventRaised, m))
	case provider.MessageEventSent:
		return append(events, history.Event{Kind: history.ExternalEventRaised, Name: m.Name, EventID: m.EventID, Data: dataOf(&m.Message), Parent: m.Parent})
	case provider.MessageUpdateSent: // the turn decides whether it is accepted
		return append(events, m.Inputs(dataOf(&m.Message))...)
	case provider.MessageEventAnswered, provider.MessageUpdateAnswered:
		return append(events, answered(m)...)
	case provider.MessageUpdate: // the turn decides whether it is accepted
		return append(events, requested(history.UpdateAccepted, m))
	case provider.MessageTerminate:
		return append(events, history.Event{Kind: history.OrchestrationTerminated, Message: history.TruncateCancelMessage(m.Text), RequestedBy: history.Requester(m.RequestedBy)})
	case provider.MessageChildOutcome:
		return append(events, childOutcome(m))
	case provider.MessageCancel:
		return append(events, history.Event{Kind: history.CancelRequested, Reason: m.Reason, Message: history.TruncateCancelMessage(m.Text), RequestedBy: asker(m)})
	case provider.MessageCancelActivity:
		return append(events, history.Event{
			Kind: history.ActivityCancelRequested, SourceEventID: m.ActivityID, Reason: string(perdure.ReasonRequested), Message: history.TruncateCancelMessage(m.Text),
			RequestedBy: cmp.Or(history.Requester(m.RequestedBy), history.RequestedByClient),
		})
	case provider.MessageCancelChildOutcome:
		return append(events, history.Event{Kind: history.SubOrchestrationCancelFailed, SourceEventID: m.SourceEventID, InstanceID: m.ChildID, Error: m.Error})
	case provider.MessageWake, provider.MessageStart, provider.MessageExecutionSuspended, provider.MessageExecutionResumed,
		provider.MessageActivityPending: // the last of an activity that is settled: nothing keeps its time
	}
	return events
}

// outcomes adds those of a message that are not dealt with by the attempts of activities.
func outcomes(events []history.Event, m *provider.InboxMessage, attempts *attemptLedger) []history.Event {
	events = slices.Grow(events, len(m.Outcomes))
	for i := range m.Outcomes {
		if !attempts.isDone(m, i) {
			events = append(events, outcome(&m.Outcomes[i]))
		}
	}
	return events
}

// requested is what a client has sent to the code: an external event or an update.
func requested(kind history.Kind, m *provider.InboxMessage) history.Event {
	return history.Event{Kind: kind, Name: m.Name, EventID: m.EventID, Data: dataOf(&m.Message), RequestedBy: history.Requester(m.RequestedBy)}
}

// asker is who asks for an instance to be cancelled. A parent names itself.
func asker(m *provider.InboxMessage) string {
	if m.Parent != nil {
		return m.RequestedBy
	}
	return history.Requester(m.RequestedBy)
}

// isFor reports whether a message is for the execution, or for whichever is the current one.
func (x *execution) isFor(m *provider.InboxMessage) bool {
	return (m.ExecutionID == "" || m.ExecutionID == x.head.ExecutionID) && (m.StartID == "" || m.StartID == x.start.StartID)
}

// dataOf is the data of an external event. A message has a document, or what its sender has sealed: what looks like another reference is none of the
// engine's, and must not be taken for one.
func dataOf(m *provider.Message) history.Payload {
	if _, refers := m.Data.Reference(); refers && !m.Data.IsEncoded() {
		return history.NewInlinePayload(json.RawMessage(m.Data))
	}
	return m.Data
}

// fired adds what a timer brings that is due. An activity's brings its end, if it has none yet, or an attempt, which is none of the code's
// business.
func (x *execution) fired(events []history.Event, m *provider.InboxMessage, attempts *attemptLedger) []history.Event {
	if o, ends := attempts.endOf(m); ends {
		return append(events, outcome(&o))
	}
	if m.Attempt > 0 || attempts.isDone(m, 0) {
		return events
	}
	if !m.Activity {
		return append(events, history.Event{Kind: history.TimerFired, SourceEventID: m.TimerID})
	}
	if !x.state.HasTimer(m.TimerID) {
		return events
	}
	return append(events, history.Event{Kind: history.ActivityFailed, SourceEventID: m.TimerID, Error: intake.TimedOut(intake.CloseMessage)})
}

func outcome(o *provider.ActivityOutcome) history.Event {
	e := history.Event{Kind: history.ActivityCompleted, SourceEventID: o.ActivityID, Attempt: o.Attempt, Result: o.Result}
	if o.Error != nil {
		e.Kind, e.Result, e.Error = history.ActivityFailed, nil, o.Error
	}
	if o.Ended != "" || o.SeenAt != nil {
		e.Cancel = &history.CancelDetails{Outcome: o.Ended, SeenAt: o.SeenAt}
	}
	return e
}

func childOutcome(m *provider.InboxMessage) history.Event {
	if m.Error != nil {
		return history.Event{Kind: history.SubOrchestrationFailed, SourceEventID: m.SourceEventID, InstanceID: m.ChildID, Error: m.Error}
	}
	return history.Event{Kind: history.SubOrchestrationCompleted, SourceEventID: m.SourceEventID, Result: m.Result}
}

// failures are the inputs that record outputs which could not be sent (R9).
func failures(refused []provider.OutputFailure) []history.Event {
	events := make([]history.Event, len(refused))
	for i := range refused {
		events[i] = history.Event{Kind: history.OutputFailed, SourceEventID: refused[i].EventID, Error: &refused[i].Failure}
		if ended := refused[i].Ended; ended != "" {
			events[i].Cancel = &history.CancelDetails{Outcome: ended}
		}
	}
	return events
}
