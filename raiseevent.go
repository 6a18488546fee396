package perdure

import (
	"errors"
	"fmt"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

// What errors.Is finds in a *RaiseEventError.
var (
	// ErrInstanceNotFound: there is no instance of that id, not yet or not any more.
	ErrInstanceNotFound = errors.New("perdure: there is no such instance")
	// ErrInstanceOver: the instance has ended.
	ErrInstanceOver = errors.New("perdure: the instance is over")
)

// RaiseEventError says why an external event did not reach the instance that RaiseEvent named. Errors.Is finds ErrInstanceNotFound or
// ErrInstanceOver in it; where it finds neither, the event could not be sent. The event was not, and will not be, delivered.
type RaiseEventError struct {
	// Event is the name of the event, InstanceID the instance that it was for.
	Event, InstanceID string
	// Type names the error, as in ActivityError.
	Type    string
	Message string
}

func newRaiseEventError(event, instanceID string, f *history.Failure) *RaiseEventError {
	return &RaiseEventError{Event: event, InstanceID: instanceID, Type: f.Type, Message: f.Message}
}

// Error implements error.
func (e *RaiseEventError) Error() string {
	return fmt.Sprintf("external event %q for instance %q was not delivered: %s", e.Event, e.InstanceID, e.Message)
}

// Is makes it an ErrInstanceNotFound or ErrInstanceOver.
func (e *RaiseEventError) Is(target error) bool {
	switch e.Type {
	case history.TypeNotFound:
		return target == ErrInstanceNotFound
	case history.TypeOver:
		return target == ErrInstanceOver
	default:
		return false
	}
}

// RaiseEvent raises an external event in another instance, or in this one, which takes it with WaitForExternalEvent. It is delivered exactly
// once, and the events that one execution raises in one instance arrive in the order in which they were raised; what it starts
// with that id before, is there before they come.
//
// The future settles once the event is in the history of the other instance, whether that waits for it or not, and also while that is
// blocked. Otherwise it settles with a *RaiseEventError: there is no such instance, not even one that is still to begin, or it is over. To send an
// event need not be awaited: it is sent when this turn is history, also if this orchestration ends in it, or is cancelled later. The cancel of the future gives up
// the answer alone. In a cancelled scope nothing is sent: what has to be told then is told in WithoutCancel.
//
// Events to one instance are sent one after the other, about a hundred a second: what belongs together is better one event.
//
// An instance id of another form than WithInstanceID takes, a name of more than 256 bytes or with control characters, and data that does not
// encode, or of more than MaxPayloadBytes, fail the future, and nothing is sent. An empty name panics.
func RaiseEvent(ctx *OrchestrationContext, instanceID, name string, v any) *Future[struct{}] {
	mustName("external event", name)
	doc, err := ctx.encode(payload{data, externalEvent, name}, v)
	if err == nil {
		err = checkReceiver(instanceID, name)
	}
	if err != nil {
		return failed[struct{}](ctx, name, err)
	}
	return &Future[struct{}]{task: replay.RaiseEvent(ctx.replay, instanceID, name, doc)}
}

func checkReceiver(instanceID, name string) error {
	if err := checkInstanceID(instanceID, history.MaxInstanceIDBytes, ""); err != nil {
		return fmt.Errorf("perdure: RaiseEvent of %q: %w", name, err)
	}
	if err := checkShort("name", name); err != nil {
		return fmt.Errorf("perdure: RaiseEvent of %q: %w", bounded(name), err)
	}
	return nil
}
