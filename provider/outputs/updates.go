package outputs

import (
	"cmp"
	"fmt"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// updateOf returns the message with an update for another instance. Its IDs depend only on the IDs of the execution and
// the event, so the receiver recognizes a copy.
func updateOf(x Origin, e *history.Event) provider.Message {
	at, sender := e.Time, provider.StartID(x.ExecutionID, e.ID)
	return provider.Message{
		Kind: provider.MessageUpdateSent, InstanceID: e.InstanceID, Name: e.Name, EventID: cmp.Or(e.EventID, sender),
		Data: sentPayload(e.Data, provider.MessageUpdateSent, sender), SentAt: &at,
		Parent:        &history.Parent{InstanceID: x.InstanceID, ExecutionID: x.ExecutionID, EventID: e.ID},
		Orchestration: e.Orchestration, Version: e.Version,
		Input:         sentPayload(e.Input, provider.MessageUpdateSent, sender+" starts"),
		SourceEventID: e.ID, TraceParent: x.trace,
	}
}

// UpdateReply returns the response to an orchestration that sent an update to an instance.
func UpdateReply(
	instanceID string, sender history.Parent, trace history.TraceParent, result history.Payload, f *history.Failure,
) provider.Message {
	return provider.Message{
		Kind: provider.MessageUpdateAnswered, InstanceID: sender.InstanceID, ExecutionID: sender.ExecutionID,
		SourceEventID: sender.EventID, ChildID: instanceID,
		Result: result, Error: f, TraceParent: trace,
	}
}

// PurgedFailure returns the failure of an update that may be a copy. A purged instance with the same ID may have
// consumed the original.
func PurgedFailure(instanceID string) *history.Failure {
	return &history.Failure{
		Type:         history.TypeUpdatePurged,
		Message:      fmt.Sprintf("instance %q, which may have accepted the update, was purged", instanceID),
		NonRetryable: true,
	}
}

// TooManyWaitersFailure returns the failure of an update for which too many orchestrations are already waiting.
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
	messages []provider.Message
}

// add adds responses to the callers of an update that has ended.
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

// addEnded adds responses to the callers of updates that have no result when the execution ends.
func (r *updateReplies) addEnded(e *history.Event) {
	for _, c := range e.Callers {
		r.messages = append(r.messages, UpdateReply(r.x.InstanceID, c, r.x.trace, nil, EndedFailure(r.x.InstanceID)))
	}
}

// UpdateResultOf returns the result of an UpdateRejected or UpdateCompleted event. For a result in the payload store,
// it contains the key of the copy (see EachMessagePayload), because the update result can outlive the execution.
func UpdateResultOf(x Origin, e *history.Event) provider.UpdateResult {
	a := provider.UpdateResult{
		InstanceID: x.InstanceID, StartID: x.StartID, UpdateID: e.EventID, Name: e.Name,
		Outcome: provider.UpdateCompleted, Error: e.Error, Reason: e.Reason,
		ExecutionID: x.ExecutionID, EventID: e.ID,
		Result: sentPayload(e.Result, provider.MessageUpdate, provider.StartID(x.ExecutionID, e.ID)),
	}
	switch {
	case e.Kind == history.UpdateRejected:
		a.Outcome = provider.UpdateRejected
	case e.IsAbortedUpdate():
		a.Outcome = provider.UpdateAborted
	}
	return a
}

// RepeatedUpdateResults returns the results of updates that were sent again. repeated maps update IDs to names. For an
// update without a result in this history, the outcome is UpdateResultExpired. Do not pass updates whose handler has
// not returned.
func RepeatedUpdateResults(o *provider.Orchestration, repeated map[string]string) []provider.UpdateResult {
	x := HistoryOrigin(o)
	responses := make([]provider.UpdateResult, 0, len(repeated))
	found := map[string]bool{}
	for i := range o.Segments {
		for j := range o.Segments[i].Events {
			e := &o.Segments[i].Events[j]
			if e.Kind != history.UpdateRejected && e.Kind != history.UpdateCompleted {
				continue
			}
			if _, requested := repeated[e.EventID]; requested && !found[e.EventID] {
				responses = append(responses, UpdateResultOf(x, e))
				found[e.EventID] = true
			}
		}
	}
	for id, name := range repeated {
		if !found[id] {
			responses = append(responses, provider.UpdateResult{
				InstanceID: x.InstanceID, StartID: x.StartID, UpdateID: id, Name: name, ExecutionID: x.ExecutionID,
				Outcome: provider.UpdateResultExpired,
			})
		}
	}
	return responses
}
