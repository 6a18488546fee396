package perdure

import (
	"errors"
	"fmt"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/failures"
	"github.com/perdure/perdure/internal/names"
	"github.com/perdure/perdure/internal/payloadjson"
	"github.com/perdure/perdure/internal/replay"
)

// Errors that errors.Is finds in a *CallUpdateError, in addition to ErrInstanceNotFound and ErrInstanceEnded.
var (
	// ErrInstancePurged means that the instance was purged. The outcome of the update is unknown.
	ErrInstancePurged = errors.New("perdure: instance was purged")
	// ErrUpdateRejected means that the update was rejected and had no effect.
	ErrUpdateRejected = errors.New("perdure: update rejected")
	// ErrUpdateAborted means that the update was accepted, but the execution ended or continued as new before the
	// handler returned.
	ErrUpdateAborted = errors.New("perdure: execution ended before the update handler returned")
)

// CallUpdateError is the error of an update that CallUpdate or CallEntity sent. errors.Is finds ErrInstanceNotFound,
// ErrInstanceEnded, ErrInstancePurged, ErrUpdateRejected or ErrUpdateAborted in it. If it finds none of them, the
// handler failed (see Cause) or the update could not be sent.
type CallUpdateError struct {
	// Update is the name of the update, and UpdateID is its ID. InstanceID is the ID of the receiving instance.
	Update, UpdateID, InstanceID string
	// Type is the kind of the error: history.TypeNotFound, TypeEnded, TypeUpdatePurged, TypeUpdateRejected,
	// TypeUpdateAborted, TypeUpdateResultExpired or TypeUpdateFailed. If the update could not be sent, Type is the type
	// of the send error.
	Type    string
	Message string
	// RejectReason is the reason of a rejection, one of the history.Rejected constants. Otherwise it is empty.
	RejectReason string
	// Cause is the failure of the handler, or of the validator that rejected the update. Otherwise it is nil.
	Cause *history.Failure
}

func newCallUpdateError(t *replay.Task, f *history.Failure) *CallUpdateError {
	return &CallUpdateError{
		Update: t.Name(), UpdateID: t.UpdateID(), InstanceID: t.ReceiverID(), Type: f.Type, Message: f.Message,
		RejectReason: f.Reason, Cause: f.Cause,
	}
}

// Error returns a message with the update, its ID, the instance, the type and the message.
func (e *CallUpdateError) Error() string {
	return fmt.Sprintf("update %q (%s) of instance %q: %s: %s", e.Update, e.UpdateID, e.InstanceID, e.Type, e.Message)
}

// Is reports whether target is the sentinel error for e.Type.
func (e *CallUpdateError) Is(target error) bool {
	switch e.Type {
	case history.TypeNotFound:
		return target == ErrInstanceNotFound
	case history.TypeEnded:
		return target == ErrInstanceEnded
	case history.TypeUpdatePurged:
		return target == ErrInstancePurged
	case history.TypeUpdateRejected:
		return target == ErrUpdateRejected
	case history.TypeUpdateAborted:
		return target == ErrUpdateAborted
	default:
		return false
	}
}

// As finds the details of the handler's error for ErrorDetails.
func (e *CallUpdateError) As(target any) bool { return failures.Carried{}.As(target, e.Cause) }

// Unwrap returns the engine error that the handler failed with, such as a *TimeoutError, or nil.
func (e *CallUpdateError) Unwrap() error { return engineErrorIn(e.Cause) }

// CallUpdateOption is an option of CallUpdate and CallEntity.
type CallUpdateOption interface{ applyToCallUpdate(c *updateCall) }

// updateCall is a call of CallUpdate with its options.
type updateCall struct {
	replay.UpdateCall
	hasID, starts bool
	input         any // of the orchestration to start
}

type callUpdateOption func(c *updateCall)

func (o callUpdateOption) applyToCallUpdate(c *updateCall) { o(c) }

// WithUpdateID sets the ID of the update. Without it, the ID is derived from the caller's execution. The instance
// handles updates with the same ID once, with the first input, and all senders get the same result. This applies to
// updates from orchestrations and from clients. The instance remembers the ID for 30 days. The ID is 1 to 256 bytes of
// UTF-8 without control characters.
func WithUpdateID(id string) CallUpdateOption {
	return callUpdateOption(func(c *updateCall) { c.ID, c.hasID = id, true })
}

// WithStart starts an orchestration with input if no running or ended instance has the ID. The new instance runs the
// highest version of the orchestration and handles the update first. If an instance with the ID exists, input is not
// used, even if the instance runs another orchestration. If the instance is being purged, the update waits until the
// purge has finished. WithStart panics if orchestration is empty or not valid UTF-8.
func WithStart(orchestration string, input any) CallUpdateOption {
	names.Must("orchestration", orchestration)
	return callUpdateOption(func(c *updateCall) { c.starts, c.Orchestration, c.input = true, orchestration, input })
}

// CallUpdate sends an update to another instance and returns the future of the handler's result. The instance sets the
// handler with SetUpdateHandler. The update is delivered exactly once, and in order with other updates and external
// events that this execution sends to the instance. If the execution started that instance earlier, the instance exists
// when the update arrives.
//
// The future settles when the handler returns. A paused or blocked instance handles the update when it continues. The
// future fails with a *CallUpdateError if the update is rejected or its handler fails. It also fails with this error if
// the instance does not exist, has ended, was purged, or ends before the handler returns. In these cases the future
// fails and nothing is sent:
//
//   - instanceID is not valid for WithInstanceID.
//   - name is longer than 256 bytes or has control characters.
//   - The input cannot be encoded or is larger than MaxPayloadBytes.
//   - The scope of ctx is cancelled.
//
// The update is sent when this turn is committed, even if this orchestration ends in the turn or is cancelled later.
// You do not have to await the future. Cancelling the future only stops the wait for the result. To limit the wait, use
// Select with a timer. About 100 updates a second can be sent to one instance. If an orchestration sends an update to
// its own instance, its handler runs concurrently. CallUpdate panics if name is empty or not valid UTF-8.
func CallUpdate[Out any](
	ctx *OrchestrationContext, instanceID, name string, in any, opts ...CallUpdateOption,
) *Future[Out] {
	names.Must("update", name)
	c := updateCall{UpdateCall: replay.UpdateCall{InstanceID: instanceID, Name: name}}
	for _, opt := range opts {
		opt.applyToCallUpdate(&c)
	}
	if err := c.complete(ctx, in); err != nil {
		return failed[Out](ctx, name, err)
	}
	return &Future[Out]{task: ctx.replay.CallUpdate(c.UpdateCall)}
}

// complete checks the call and adds its inputs.
func (c *updateCall) complete(ctx *OrchestrationContext, in any) error {
	err := names.CheckReceiver("CallUpdate", c.InstanceID, c.Name)
	if err == nil && c.hasID {
		err = names.CheckUpdateID("CallUpdate", c.Name, c.ID)
	}
	if err != nil {
		return err
	}
	c.Data, err = ctx.encode(payloadjson.Input(payloadjson.Update, c.Name), in)
	if err == nil && c.starts {
		c.Input, err = ctx.encode(payloadjson.Input(payloadjson.Orchestration, c.Orchestration), c.input)
	}
	return err
}
