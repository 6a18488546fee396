package costestimate

import (
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/pricing"
)

// payloads adds the usage of an event's payloads in the payload store.
func (r *Estimator) payloads(e *history.Event) {
	e.EachPayload(func(p history.EventPayload) {
		key := p.Payload.StorageKey()
		if key == "" || r.before[key] {
			return
		}
		if e.Kind == history.InputsParked || e.Kind == history.UpdateReceived {
			r.before[key] = true
		}
		writes, reads := r.objects(e, p.Kind)
		if writes > 0 {
			r.usage[pricing.ObjectWrites] += writes
		}
		if reads > 0 {
			r.usage[pricing.ObjectReads] += reads
		}
	})
}

// objects returns the number of writes and copies of a large payload, and the number of its reads. A message and each
// history have a copy. Each other process that needs the payload reads it once and caches it.
func (r *Estimator) objects(e *history.Event, kind history.PayloadKind) (writes, reads float64) {
	switch kind {
	case history.PayloadActivityInput, history.PayloadActivityResult:
		if e.Inline {
			return 1, 0
		}
		return 1, 1
	case history.PayloadEventData, history.PayloadUpdateInput:
		return ofMessage(e)
	case history.PayloadOrchestrationInput:
		switch {
		case e.Kind != history.OrchestrationStarted: // the input of a child
			return 2, 0 //nolint:mnd // the history and the message
		case e.Number > 1:
			return 1, 0
		}
		return 1, 1
	case history.PayloadOrchestrationOutput:
		switch {
		case e.Kind == history.SubOrchestrationCompleted:
			return 1, 1
		case r.child:
			return 2, 0 //nolint:mnd // the history and the message
		}
		return 1, 0
	case history.PayloadUpdateResult:
		return 2, 0 //nolint:mnd // the history and the response
	default: // a side effect or a custom status
		return 1, 0
	}
}

// ofMessage is objects for an external event or an update.
func ofMessage(e *history.Event) (writes, reads float64) {
	switch {
	case e.Kind == history.OrchestrationStarted: // carried over
		return 0, 0
	case e.Kind == history.ExternalEventSent, e.Kind == history.UpdateSent:
		return 2, 0 //nolint:mnd // the history and the message
	case e.Parent != nil: // the sender wrote the message's copy
		return 1, 1
	default:
		return 2, 1 //nolint:mnd // the client and the history
	}
}
