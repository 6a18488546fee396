package perdure

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/errdetails"
	"github.com/perdure/perdure/internal/replay"
)

// Errors that errors.Is finds in a *CallUpdateError, in addition to ErrInstanceNotFound and ErrInstanceEnded.
var (
	// ErrInstancePurged means that the instance was purged. Whether it accepted the update, and with which result, is
	// unknown.
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
	// Update is the name of the update, UpdateID its ID, and InstanceID the instance it was sent to.
	Update, UpdateID, InstanceID string
	// Type is the kind of the error: history.TypeNotFound, TypeEnded, TypeUpdatePurged, TypeUpdateRejected,
	// TypeUpdateAborted, TypeUpdateResultExpired or TypeUpdateFailed. For an update that could not be sent, Type is the
	// type of the error that prevented it.
	Type    string
	Message string
	// RejectReason is the reason for a rejection: history.RejectedByValidator, RejectedNoHandler, RejectedInput,
	// RejectedNotReadOnly or RejectedLimit. Otherwise it is empty.
	RejectReason string
	// Cause is the failure that the handler, or the validator that rejected the update, returned. Otherwise it is nil.
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
func (e *CallUpdateError) As(target any) bool { return errdetails.As(target, nil, e.Cause) }

// Unwrap returns the engine error that the handler failed with, such as a *TimeoutError, or nil.
func (e *CallUpdateError) Unwrap() error {
	if e.Cause == nil {
		return nil
	}
	return engineErrorIn(e.Cause)
}

// CallUpdateOption is an option of CallUpdate and CallEntity.
type CallUpdateOption interface{ applyToCallUpdate(c *updateCall) }

// updateCall is a call with its options.
type updateCall struct {
	replay.UpdateCall
	hasID, starts bool
	input         any
}

type updateIDOption string

func (id updateIDOption) applyToCallUpdate(c *updateCall) { c.ID, c.hasID = string(id), true }

// WithUpdateID sets the ID of the update. Without it, the ID is derived from the caller's execution. Updates with the
// same ID to the same instance, from orchestrations and clients, are handled once, with the first input, and all
// senders get the same result. The instance remembers the ID for 30 days. The ID is 1 to 256 bytes of UTF-8 without
// control characters.
func WithUpdateID(id string) CallUpdateOption { return updateIDOption(id) }

type startingWith struct {
	orchestration string
	input         any
}

func (s startingWith) applyToCallUpdate(c *updateCall) {
	c.starts, c.Orchestration, c.input = true, s.orchestration, s.input
}

// WithStart starts an orchestration with input if no instance has the ID, not even one that has ended. The new
// instance runs the highest version of the orchestration and handles the update first. If an instance with the ID
// exists, input is not used, even if it is an instance of another orchestration. If the instance is being purged, the
// update waits until the purge has finished. WithStart panics if the name is empty or not valid UTF-8.
func WithStart(orchestration string, input any) CallUpdateOption {
	mustName("orchestration", orchestration)
	return startingWith{orchestration, input}
}

// CallUpdate sends an update to another instance, which handles it with SetUpdateHandler, and returns the future of the
// handler's result. The update is delivered exactly once. Updates and external events that one execution sends to one
// instance arrive in order. If the execution started that instance before, the instance exists when they arrive.
//
// The future settles when the handler returns. A paused or blocked instance handles the update when it continues. The
// future fails with a *CallUpdateError if the instance does not exist, has ended, was purged, or ends before the
// handler returns, and if the update is rejected or fails. It also fails, and nothing is sent, if
//
//   - instanceID is not valid for WithInstanceID,
//   - name is longer than 256 bytes or has control characters,
//   - the input cannot be encoded or is larger than MaxPayloadBytes, or
//   - the scope of ctx is cancelled.
//
// The update is sent when this turn is committed, even if this orchestration ends in the turn or is cancelled later.
// You need not await the future. Cancelling the future does not cancel the update; it only stops waiting for the
// result. To limit the wait, use Select with a timer. About 100 updates a second can be sent to one instance. An
// orchestration that calls itself waits for its own handler, which runs concurrently.
//
// CallUpdate panics if name is empty or not valid UTF-8.
func CallUpdate[Out any](
	ctx *OrchestrationContext, instanceID, name string, in any, opts ...CallUpdateOption,
) *Future[Out] {
	mustName("update", name)
	c := updateCall{UpdateCall: replay.UpdateCall{InstanceID: instanceID, Name: name}}
	for _, opt := range opts {
		opt.applyToCallUpdate(&c)
	}
	if err := c.complete(ctx, in); err != nil {
		return failed[Out](ctx, name, err)
	}
	return &Future[Out]{task: replay.CallUpdate(ctx.replay, c.UpdateCall)}
}

// complete checks the call and encodes its inputs.
func (c *updateCall) complete(ctx *OrchestrationContext, in any) (err error) {
	if err := c.check(); err != nil {
		return fmt.Errorf("perdure: CallUpdate %q: %w", bounded(c.Name), err)
	}
	if c.Data, err = ctx.encode(payload{input, update, c.Name}, in); err != nil || !c.starts {
		return err
	}
	c.Input, err = ctx.encode(payload{input, orchestration, c.Orchestration}, c.input)
	return err
}

func (c *updateCall) check() error {
	if err := checkInstanceID(c.InstanceID, history.MaxInstanceIDBytes, ""); err != nil {
		return err
	}
	if err := checkShort("name", c.Name); err != nil || !c.hasID {
		return err
	}
	return checkShort("update ID", c.ID)
}

// checkShort applies the limits that package client applies to names and update IDs.
func checkShort(field, s string) error {
	if s == "" || len(s) > maxNameBytes || !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
		return fmt.Errorf("%s has %d bytes; use 1 to %d bytes of UTF-8 without control characters",
			field, len(s), maxNameBytes)
	}
	return nil
}
