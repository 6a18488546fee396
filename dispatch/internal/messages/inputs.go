package messages

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/attempts"
	"github.com/perdure/perdure/dispatch/internal/execution"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// AppendInputs appends the inputs of a message to events. A message for another execution or another incarnation has
// none. Package replay (internal/replay/inputs.go) finds the task of each input.
func AppendInputs(
	events []history.Event, x *execution.Execution, m *provider.InboxMessage, a *attempts.Ledger,
) []history.Event {
	if !x.Recipient.Concerns(m) {
		return events
	}
	switch m.Kind {
	case provider.MessageActivityOutcomes, provider.MessageActivityAttempts:
		return appendOutcomes(events, m, a)
	case provider.MessageTimerFired:
		return appendFired(events, x, m, a)
	case provider.MessageEventRaised:
		return append(events, requested(history.ExternalEventRaised, m))
	case provider.MessageEventSent:
		return append(events, history.Event{
			Kind: history.ExternalEventRaised, Name: m.Name, EventID: m.EventID, Data: Data(&m.Message),
			Parent: m.Parent,
		})
	case provider.MessageUpdateSent: // the turn decides whether it is accepted
		return append(events, m.Inputs(Data(&m.Message))...)
	case provider.MessageEventAnswered, provider.MessageUpdateAnswered:
		return appendResponses(events, m)
	case provider.MessageUpdate: // the turn decides whether it is accepted
		return append(events, requested(history.UpdateAccepted, m))
	case provider.MessageTerminate, provider.MessageCancel, provider.MessageCancelActivity:
		return append(events, cancellation(m))
	case provider.MessageChildOutcome:
		return append(events, childOutcome(m))
	case provider.MessageCancelChildOutcome:
		return append(events, history.Event{
			Kind: history.SubOrchestrationCancelFailed, SourceEventID: m.SourceEventID, InstanceID: m.ChildID,
			Error: m.Error,
		})
	case provider.MessageWake, provider.MessageStart, provider.MessageExecutionSuspended,
		provider.MessageExecutionResumed, provider.MessageActivityPending: // for an activity that has ended
	}
	return events
}

// appendOutcomes appends the outcomes of a message whose attempts were not processed before the turn.
func appendOutcomes(events []history.Event, m *provider.InboxMessage, a *attempts.Ledger) []history.Event {
	events = slices.Grow(events, len(m.Outcomes))
	for i := range m.Outcomes {
		if !a.IsProcessed(m, i) {
			events = append(events, outcome(&m.Outcomes[i]))
		}
	}
	return events
}

// requested returns the external event or the update that a client has sent.
func requested(kind history.Kind, m *provider.InboxMessage) history.Event {
	return history.Event{
		Kind: kind, Name: m.Name, EventID: m.EventID, Data: Data(&m.Message),
		RequestedBy: history.Requester(m.RequestedBy),
	}
}

// cancellation returns the termination or the cancel that a message requests.
func cancellation(m *provider.InboxMessage) history.Event {
	e := history.Event{Message: history.TruncateCancelMessage(m.Text), RequestedBy: history.Requester(m.RequestedBy)}
	switch m.Kind {
	case provider.MessageTerminate:
		e.Kind = history.OrchestrationTerminated
	case provider.MessageCancelActivity:
		e.Kind, e.SourceEventID = history.ActivityCancelRequested, m.ActivityID
		e.Reason = string(perdure.ReasonRequested)
		e.RequestedBy = cmp.Or(e.RequestedBy, history.RequestedByClient)
	default:
		e.Kind, e.Reason = history.CancelRequested, m.Reason
		if m.Parent != nil { // a parent names itself
			e.RequestedBy = m.RequestedBy
		}
	}
	return e
}

// Data returns the data of an external event or an update. A message has a document or encoded data. Data that looks
// like another reference must not count as a reference of the engine.
func Data(m *provider.Message) history.Payload {
	if _, refers := m.Data.Reference(); refers && !m.Data.IsEncoded() {
		return history.NewInlinePayload(json.RawMessage(m.Data))
	}
	return m.Data
}

// appendFired appends the input of a due timer. The timer of an activity ends an open activity. The timer of an attempt
// has no input.
func appendFired(
	events []history.Event, x *execution.Execution, m *provider.InboxMessage, a *attempts.Ledger,
) []history.Event {
	if o, ok := a.TimedOut(m); ok {
		return append(events, outcome(&o))
	}
	if m.Attempt > 0 || a.IsProcessed(m, 0) {
		return events
	}
	if !m.Activity {
		return append(events, history.Event{Kind: history.TimerFired, SourceEventID: m.TimerID})
	}
	if !x.State().HasTimer(m.TimerID) {
		return events
	}
	return append(events, history.Event{
		Kind: history.ActivityFailed, SourceEventID: m.TimerID, Error: intake.TimedOut(intake.CloseMessage),
	})
}

func outcome(o *provider.ActivityOutcome) history.Event {
	e := history.Event{
		Kind: history.ActivityCompleted, SourceEventID: o.ActivityID, Attempt: o.Attempt, Result: o.Result,
	}
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
		return history.Event{
			Kind: history.SubOrchestrationFailed, SourceEventID: m.SourceEventID, InstanceID: m.ChildID, Error: m.Error,
		}
	}
	return history.Event{Kind: history.SubOrchestrationCompleted, SourceEventID: m.SourceEventID, Result: m.Result}
}

// appendResponses appends the response to an update, or to events, that the instance has sent to another one.
func appendResponses(events []history.Event, m *provider.InboxMessage) []history.Event {
	if m.Kind == provider.MessageUpdateAnswered {
		return append(events, history.Event{
			Kind: history.UpdateAnswered, SourceEventID: m.SourceEventID, InstanceID: m.ChildID, Result: m.Result,
			Error: m.Error,
		})
	}
	for _, r := range m.SourceEventIDs {
		for id := r.First; id <= r.Last; id++ {
			e := history.Event{Kind: history.ExternalEventDelivered, SourceEventID: id}
			if m.Error != nil {
				e.Kind, e.Error = history.ExternalEventUndelivered, m.Error
			}
			events = append(events, e)
		}
	}
	return events
}

// OutputFailures returns the inputs that record outputs which could not be sent (R9).
func OutputFailures(refused []provider.OutputFailure) []history.Event {
	events := make([]history.Event, len(refused))
	for i := range refused {
		events[i] = history.Event{
			Kind: history.OutputFailed, SourceEventID: refused[i].EventID, Error: &refused[i].Failure,
		}
		if ended := refused[i].Ended; ended != "" {
			events[i].Cancel = &history.CancelDetails{Outcome: ended}
		}
	}
	return events
}

// RecordUnprocessed adds the events and updates of other instances that a turn has consumed but its code has not
// received to the end of the execution. The end responds to them (R24, R31).
func RecordUnprocessed(end *history.Event, consumed ...provider.InboxMessage) {
	for i := range consumed {
		m := &consumed[i]
		if m.Kind == provider.MessageUpdateSent && end.Kind != history.OrchestrationContinuedAsNew &&
			!slices.Contains(end.Callers, *m.Parent) {
			end.Callers = append(end.Callers, *m.Parent)
		}
		if m.Kind == provider.MessageEventSent {
			end.Inputs = append(end.Inputs, history.Event{
				Kind: history.ExternalEventRaised, Name: m.Name, EventID: m.EventID, Parent: m.Parent,
			})
		}
	}
}
