package history

// PayloadKind is the role of a payload.
type PayloadKind string

// The kinds of payloads.
const (
	PayloadActivityInput       PayloadKind = "activity input"
	PayloadActivityResult      PayloadKind = "activity result"
	PayloadHeartbeatDetails    PayloadKind = "heartbeat details"
	PayloadOrchestrationInput  PayloadKind = "orchestration input"
	PayloadOrchestrationOutput PayloadKind = "orchestration output"
	PayloadEventData           PayloadKind = "event data"
	PayloadSideEffect          PayloadKind = "side effect"
	PayloadUpdateInput         PayloadKind = "update input"
	PayloadUpdateResult        PayloadKind = "update result"
	PayloadCustomStatus        PayloadKind = "custom status"
	PayloadErrorDetails        PayloadKind = "error details"
)

// EventPayload is a payload of an event and its role. Name is the name of the activity, orchestration, external event
// or update, or empty if the event does not have it.
type EventPayload struct {
	Payload *Payload
	Kind    PayloadKind
	Name    string
}

// EachPayload calls f with each payload of the event and of its lists. f may replace the payload.
func (e *Event) EachPayload(f func(EventPayload)) {
	each := func(p *Payload, kind PayloadKind, name string) {
		if len(*p) > 0 {
			f(EventPayload{p, kind, name})
		}
	}
	input := PayloadOrchestrationInput
	if e.Kind == ActivityScheduled {
		input = PayloadActivityInput
	}
	result := PayloadActivityResult
	switch e.Kind {
	case SubOrchestrationCompleted:
		result = PayloadOrchestrationOutput
	case UpdateCompleted, UpdateAnswered:
		result = PayloadUpdateResult
	default:
	}
	data := PayloadEventData
	if e.Kind == UpdateReceived || e.Kind == UpdateAccepted || e.Kind == UpdateSent {
		data = PayloadUpdateInput
	}
	each(&e.Input, input, e.Name)
	each(&e.Result, result, e.Name)
	each(&e.Output, PayloadOrchestrationOutput, e.Name)
	each(&e.Data, data, e.Name)
	each(&e.Value, PayloadSideEffect, e.Name)
	each(&e.CustomStatus, PayloadCustomStatus, e.Name)
	e.Error.EachPayload(e.Name, f)
	for i := range e.CarriedEvents {
		each(&e.CarriedEvents[i].Data, PayloadEventData, e.CarriedEvents[i].Name)
	}
	for i := range e.Inputs {
		e.Inputs[i].EachPayload(f)
	}
}

// EachPayload calls each with the details of f and of its causes. each may replace them. name is the name of the work
// that failed.
func (f *Failure) EachPayload(name string, each func(EventPayload)) {
	for ; f != nil; f = f.Cause {
		if len(f.Details) > 0 {
			each(EventPayload{&f.Details, PayloadErrorDetails, name})
		}
	}
}
