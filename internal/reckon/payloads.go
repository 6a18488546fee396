package reckon

import (
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/pricing"
)

// payloads is what the large payloads of an event take, those that lie in the hub's bucket.
func (r *Reckoning) payloads(e *history.Event) {
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

// objects is how often a large payload is written or copied, and how often read. Who makes one writes it, who sends it in a message copies it, so does who
// takes it from one, and who needs it in another process reads it once: what a process has written or read it has for the next time.
func (r *Reckoning) objects(e *history.Event, kind history.PayloadKind) (writes, reads float64) {
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
		case e.Kind != history.OrchestrationStarted: // it is sent to a child
			return 2, 0 //nolint:mnd // its own, and the message's
		case e.Number > 1:
			return 1, 0
		}
		return 1, 1
	case history.PayloadOrchestrationOutput:
		switch {
		case e.Kind == history.SubOrchestrationCompleted:
			return 1, 1
		case r.child:
			return 2, 0 //nolint:mnd // its own, and the message's
		}
		return 1, 0
	case history.PayloadUpdateResult:
		return 2, 0 //nolint:mnd // its own, and the answer's
	default: // of a side effect, or a custom status
		return 1, 0
	}
}

// ofMessage is objects of an external event or an update.
func ofMessage(e *history.Event) (writes, reads float64) {
	switch {
	case e.Kind == history.OrchestrationStarted: // carried over
		return 0, 0
	case e.Kind == history.ExternalEventSent, e.Kind == history.UpdateSent:
		return 2, 0 //nolint:mnd // its own, and the message's
	case e.Parent != nil: // its sender has paid for the message's
		return 1, 1
	default:
		return 2, 1 //nolint:mnd // the client's, and its own
	}
}
