package provider

import (
	"cmp"
	"fmt"

	"github.com/perdure/perdure/history"
)

// IsSent reports whether the message is an external event or an update of another instance. The sender always receives
// a response.
func (m *Message) IsSent() bool { return m.Kind == MessageEventSent || m.Kind == MessageUpdateSent }

// sentOf returns the message of an event that an execution sends to another instance.
func sentOf(x Origin, e *history.Event) Message {
	if e.Kind == history.UpdateSent {
		return updateOf(x, e)
	}
	return eventOf(x, e)
}

// updateOf returns the message with an update for another instance. It depends only on IDs: sent again, it is the same
// update of the same sender.
func updateOf(x Origin, e *history.Event) Message {
	at, sender := e.Time, StartID(x.ExecutionID, e.ID)
	return Message{
		Kind: MessageUpdateSent, InstanceID: e.InstanceID, Name: e.Name, EventID: cmp.Or(e.EventID, sender),
		Data: sentPayload(e.Data, MessageUpdateSent, sender), SentAt: &at,
		Parent:        &history.Parent{InstanceID: x.InstanceID, ExecutionID: x.ExecutionID, EventID: e.ID},
		Orchestration: e.Orchestration, Version: e.Version,
		Input:         sentPayload(e.Input, MessageUpdateSent, sender+" starts"),
		SourceEventID: e.ID, TraceParent: x.trace,
	}
}

// Inputs returns the events that history records for an update of another orchestration.
func (m *Message) Inputs(data history.Payload) []history.Event {
	return []history.Event{
		{Kind: history.UpdateAwaited, Name: m.Name, EventID: m.EventID, Parent: m.Parent},
		{Kind: history.UpdateAccepted, Name: m.Name, EventID: m.EventID, Data: data},
	}
}

// UpdateReply returns the response to an orchestration that sent an update to an instance.
func UpdateReply(
	instanceID string, sender history.Parent, trace history.TraceParent, result history.Payload, f *history.Failure,
) Message {
	return Message{
		Kind: MessageUpdateAnswered, InstanceID: sender.InstanceID, ExecutionID: sender.ExecutionID,
		SourceEventID: sender.EventID, ChildID: instanceID,
		Result: result, Error: f, TraceParent: trace,
	}
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

// PurgedFailure returns the failure of an update that may be a copy of one that a purged instance with the same ID
// consumed.
func PurgedFailure(instanceID string) *history.Failure {
	return &history.Failure{
		Type:         history.TypeUpdatePurged,
		Message:      fmt.Sprintf("instance %q, which may have accepted the update, was purged", instanceID),
		NonRetryable: true,
	}
}

// TooManyWaitersFailure returns the failure of an update that too many orchestrations wait for already.
func TooManyWaitersFailure(instanceID string) *history.Failure {
	return &history.Failure{
		Type: history.TypeUpdateRejected, Reason: history.RejectedLimit,
		Message: fmt.Sprintf("too many callers wait for updates of instance %q; try again when some have returned",
			instanceID),
	}
}

// updateReplies collects the responses of a segment to the senders of updates.
type updateReplies struct {
	x        Origin
	messages []Message
}

// add adds responses with the end of an update to callers.
func (r *updateReplies) add(end *history.Event, callers ...history.Parent) {
	if len(callers) == 0 {
		return
	}
	a := UpdateResultOf(r.x, end)
	for _, c := range callers {
		r.messages = append(r.messages, UpdateReply(r.x.InstanceID, c, r.x.trace, a.Result, a.Failure()))
	}
}

// addRepeated adds a response to the sender of an update that an earlier event has ended.
func (r *updateReplies) addRepeated(before []history.Event, e *history.Event) {
	if e.Parent == nil {
		return
	}
	for i := range before {
		if end := &before[i]; end.EventID == e.EventID &&
			(end.Kind == history.UpdateCompleted || end.Kind == history.UpdateRejected) {
			r.add(end, *e.Parent)
			return
		}
	}
}

// addEnded adds responses to the callers of updates that the end of the execution leaves without a result.
func (r *updateReplies) addEnded(e *history.Event) {
	for _, c := range e.Callers {
		r.messages = append(r.messages, UpdateReply(r.x.InstanceID, c, r.x.trace, nil, EndedFailure(r.x.InstanceID)))
	}
}
