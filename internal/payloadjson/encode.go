package payloadjson

import (
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/history"
)

// Name names a payload in errors.
type Name struct {
	part  string
	owner Owner
	name  string
}

// Owner is the kind of code that a payload belongs to.
type Owner string

// The owners of payloads.
const (
	Activity      Owner = "activity"
	Orchestration Owner = "orchestration"
	Query         Owner = "query"
	Update        Owner = "update"
	ExternalEvent Owner = "external event"
)

// Input names the input of an owner.
func Input(of Owner, name string) Name { return Name{"input", of, name} }

// Output names the output of an orchestration, a query or an update.
func Output(of Owner, name string) Name { return Name{"output", of, name} }

// Result names the result of an activity or an orchestration, as its caller receives it.
func Result(of Owner, name string) Name { return Name{"result", of, name} }

// ResultOf names the result of a task of this kind and name.
func ResultOf(kind history.Kind, name string) Name {
	switch kind {
	case history.ExternalEventSubscribed, history.ExternalEventSent:
		return EventData(name)
	case history.UpdateSent:
		return Output(Update, name)
	case history.SubOrchestrationScheduled:
		return Result(Orchestration, name)
	default:
		return Result(Activity, name)
	}
}

// EventData names the data of an external event.
func EventData(event string) Name { return Name{"data", ExternalEvent, event} }

// HeartbeatDetails names the details of an activity's heartbeats.
func HeartbeatDetails(activity string) Name { return Name{"heartbeat details", Activity, activity} }

// CustomStatus names the custom status of an orchestration.
func CustomStatus(orchestration string) Name {
	return Name{"custom status", Orchestration, orchestration}
}

// SideEffect names the value of a side effect.
func SideEffect() Name { return Name{part: "value", owner: "side effect"} }

// String returns the name in words.
func (n Name) String() string {
	if n.name == "" {
		return fmt.Sprintf("%s of a %s", n.part, n.owner)
	}
	return fmt.Sprintf("%s of %s %q", n.part, n.owner, n.name)
}

// Encode encodes a payload like Marshal. The error names the payload.
func Encode(of Name, v any) (json.RawMessage, error) {
	doc, err := Marshal(v)
	if err != nil {
		return nil, &codingError{failure: history.TypeEncode, message: "encode " + of.String(), cause: err}
	}
	return doc, nil
}

// Decode decodes a payload. It leaves v unchanged if there is no document. The error names the payload.
func Decode(of Name, doc json.RawMessage, v any) error {
	if len(doc) == 0 {
		return nil
	}
	if err := json.Unmarshal(doc, v); err != nil {
		return &codingError{failure: history.TypeDecode, message: "decode " + of.String(), cause: err}
	}
	return nil
}

// codingError means that a value and its document do not match. A retry does not help.
type codingError struct {
	failure, message string
	cause            error
}

// Error implements error. The cause names the field.
func (e *codingError) Error() string { return "perdure: " + e.message + ": " + e.cause.Error() }

// Unwrap returns the cause.
func (e *codingError) Unwrap() error { return e.cause }

// ErrorType returns the type name that failures store for the error.
func (e *codingError) ErrorType() string { return e.failure }

// NonRetryable returns true.
func (e *codingError) NonRetryable() bool { return true }
