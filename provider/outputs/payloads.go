package outputs

import (
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// EachMessagePayload calls f for the stored payloads of an event that are sent to another instance or returned as the
// result of an update. from is the key in the sender's execution, and to is the key of the copy. The caller makes the
// copies before the event is committed, so that the message does not depend on the sender's execution.
func EachMessagePayload(x Origin, e *history.Event, f func(from, to string)) {
	send := func(own, sent history.Payload) {
		if from := own.StorageKey(); from != "" {
			f(from, sent.StorageKey())
		}
	}
	switch {
	case e.Kind == history.SubOrchestrationScheduled, e.Kind == history.DetachedOrchestrationScheduled:
		send(e.Input, startOf(x, e).Input)
	case e.Kind == history.ExternalEventSent:
		send(e.Data, eventOf(x, e).Data)
	case e.Kind == history.UpdateSent:
		m := updateOf(x, e)
		send(e.Data, m.Data)
		send(e.Input, m.Input)
	case e.Kind == history.UpdateCompleted:
		send(e.Result, UpdateResultOf(x, e).Result)
	case e.Kind == history.OrchestrationCompleted && x.Parent != nil:
		send(e.Output, outcomeFor(x, e).Result)
	}
}

// sentPayload returns the payload to send. For a payload in the payload store, it is a reference to a copy for the
// message.
func sentPayload(p history.Payload, kind provider.MessageKind, id string) history.Payload {
	if p.StorageKey() == "" {
		return p
	}
	s, _ := p.Encoded()
	s.Key = provider.MessagePayloadKey(kind, id, s.SHA256)
	return s.Payload()
}
