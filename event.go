package perdure

import (
	"errors"
	"fmt"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/names"
	"github.com/perdure/perdure/internal/payloadjson"
)

// Errors that errors.Is finds in a *RaiseEventError.
var (
	// ErrInstanceNotFound means that no instance has the ID.
	ErrInstanceNotFound = errors.New("perdure: instance not found")
	// ErrInstanceEnded means that the instance has ended.
	ErrInstanceEnded = errors.New("perdure: instance has ended")
)

// RaiseEventError means that an external event of RaiseEvent was not delivered and is not sent again. errors.Is finds
// ErrInstanceNotFound or ErrInstanceEnded in it. If it finds neither, the event could not be sent.
type RaiseEventError struct {
	// Event is the name of the event. InstanceID is the ID of the receiving instance.
	Event, InstanceID string
	// Type is the type name of the error, as in ActivityError.
	Type    string
	Message string
}

// Error returns a message with the event, the instance and the cause.
func (e *RaiseEventError) Error() string {
	return fmt.Sprintf("external event %q for instance %q was not delivered: %s", e.Event, e.InstanceID, e.Message)
}

// Is reports whether target is the sentinel error for e.Type.
func (e *RaiseEventError) Is(target error) bool {
	switch e.Type {
	case history.TypeNotFound:
		return target == ErrInstanceNotFound
	case history.TypeEnded:
		return target == ErrInstanceEnded
	default:
		return false
	}
}

// RaiseEvent sends an external event to another instance or to this instance. The receiver uses WaitForExternalEvent.
// The event is delivered exactly once, and in order with other events and updates that this execution sends to the
// instance. If the execution started that instance earlier, the instance exists when the event arrives.
//
// The future settles when the event is in the history of the receiving instance. That instance can be blocked and does
// not have to wait for the event. The future fails with a *RaiseEventError if the instance does not exist or has ended.
// In these cases the future fails and nothing is sent:
//
//   - instanceID is not valid for WithInstanceID.
//   - name is longer than 256 bytes or has control characters.
//   - The data cannot be encoded or is larger than MaxPayloadBytes.
//   - The scope of ctx is cancelled. To send an event despite a cancellation, use a context of WithoutCancel.
//
// The event is sent when this turn is committed, even if this orchestration ends in the turn or is cancelled later. You
// do not have to await the future. Cancelling the future does not stop the event. About 100 events a second can be sent
// to one instance. RaiseEvent panics if name is empty or not valid UTF-8.
func RaiseEvent(ctx *OrchestrationContext, instanceID, name string, v any) *Future[struct{}] {
	names.Must("external event", name)
	doc, err := ctx.encode(payloadjson.EventData(name), v)
	if err == nil {
		err = names.CheckReceiver("RaiseEvent", instanceID, name)
	}
	if err != nil {
		return failed[struct{}](ctx, name, err)
	}
	return &Future[struct{}]{task: ctx.replay.RaiseEvent(instanceID, name, doc)}
}

// WaitForExternalEvent returns the future of the next external event of that name. Events are buffered, so an event can
// arrive before the orchestration waits for it. Several events of one name settle futures in the order in which the
// events arrived and the futures were created. An event whose ID this execution has already received is dropped.
//
// An event is consumed when its future wins a WhenAny or Select, or when an Await or WhenAll with its future completes.
// If the future is cancelled before, for example because it loses a Select, the event returns to the head of its queue.
// A future that is never awaited also receives an event, so cancel such a future. Events that are not consumed are
// passed to the next execution when the orchestration continues as new, and are dropped when it ends.
//
// The data is decoded from JSON into a T. If the decoding fails, Await returns an error and the event is consumed.
// WaitForExternalEvent panics if name is empty or not valid UTF-8.
func WaitForExternalEvent[T any](ctx *OrchestrationContext, name string) *Future[T] {
	names.Must("external event", name)
	return &Future[T]{task: ctx.replay.WaitForExternalEvent(name)}
}
