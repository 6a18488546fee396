package outputs

import (
	"fmt"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// eventOf returns the message with an external event for another instance. Its event ID depends only on the IDs of the
// execution and the event, so the receiver drops a copy.
func eventOf(x Origin, e *history.Event) provider.Message {
	at, id := e.Time, provider.StartID(x.ExecutionID, e.ID)
	return provider.Message{
		Kind: provider.MessageEventSent, InstanceID: e.InstanceID, Name: e.Name, EventID: id,
		Data: sentPayload(e.Data, provider.MessageEventSent, id), SentAt: &at,
		Parent:        &history.Parent{InstanceID: x.InstanceID, ExecutionID: x.ExecutionID, EventID: e.ID},
		SourceEventID: e.ID, TraceParent: x.trace,
	}
}

// DeliveryReplies returns the responses to the senders of external events and updates in messages for one instance. If
// f is nil, the responses report that the events were delivered. Otherwise f is the reason why they were not delivered.
func DeliveryReplies(f *history.Failure, ms ...*provider.InboxMessage) []provider.Message {
	replies := eventReplies{x: Origin{InstanceID: ms[0].InstanceID}}
	for _, m := range ms {
		replies.x.trace = m.TraceParent
		if m.Kind == provider.MessageUpdateSent {
			replies.messages = append(replies.messages, UpdateReply(m.InstanceID, *m.Parent, m.TraceParent, nil, f))
			continue
		}
		replies.add(m.Parent, f)
	}
	return replies.messages
}

// EndedFailure returns the failure of an external event for an instance that has ended.
func EndedFailure(instanceID string) *history.Failure {
	return &history.Failure{
		Type: history.TypeEnded, Message: fmt.Sprintf("instance %q has ended", instanceID),
		NonRetryable: true,
	}
}

// NotFoundFailure returns the failure of an external event for an instance that does not exist.
func NotFoundFailure(instanceID string) *history.Failure {
	return &history.Failure{Type: history.TypeNotFound, Message: fmt.Sprintf("instance %q not found", instanceID)}
}

// eventReplies collects the responses of a segment to the senders of external events. Consecutive events of one sender
// share a message.
type eventReplies struct {
	x        Origin
	messages []provider.Message
}

// addAll adds the responses to events of other instances.
func (r *eventReplies) addAll(f *history.Failure, events ...history.Event) {
	for i := range events {
		if events[i].Kind == history.ExternalEventRaised && events[i].Parent != nil {
			r.add(events[i].Parent, f)
		}
	}
}

func (r *eventReplies) add(sender *history.Parent, f *history.Failure) {
	if n := len(r.messages); n > 0 {
		last := &r.messages[n-1]
		if last.Kind == provider.MessageEventAnswered && last.ExecutionID == sender.ExecutionID &&
			(last.Error == nil) == (f == nil) {
			last.SourceEventIDs = history.AppendID(last.SourceEventIDs, sender.EventID)
			return
		}
	}
	r.messages = append(r.messages, provider.Message{
		Kind: provider.MessageEventAnswered, InstanceID: sender.InstanceID, ExecutionID: sender.ExecutionID,
		ChildID: r.x.InstanceID, Error: f,
		SourceEventIDs: []history.Range{{First: sender.EventID, Last: sender.EventID}}, TraceParent: r.x.trace,
	})
}
