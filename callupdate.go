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

// What errors.Is finds in a *CallUpdateError, beside ErrInstanceNotFound and ErrInstanceOver.
var (
	// ErrInstancePurged: the instance that may have taken the update is purged, and what came of it is not known.
	ErrInstancePurged = errors.New("perdure: the instance is purged")
	// ErrUpdateRejected: the update was rejected, and has changed nothing.
	ErrUpdateRejected = errors.New("perdure: the update was rejected")
	// ErrUpdateLeft: the update was accepted, and the execution that had accepted it ended, or continued as new, before its handler returned.
	ErrUpdateLeft = errors.New("perdure: the update was left")
)

// CallUpdateError says why an update that CallUpdate sent has no result. Errors.Is finds in it ErrInstanceNotFound, ErrInstanceOver, ErrInstancePurged,
// ErrUpdateRejected or ErrUpdateLeft. Where it finds none of them, the handler returned an error, which is in Cause, or the update could not be sent.
type CallUpdateError struct {
	// Update is the name of the update, UpdateID its id, InstanceID the instance that it was for.
	Update, UpdateID, InstanceID string
	// Type is the kind of the error: history.TypeNotFound, TypeOver, UpdatePurged, UpdateRejection, UpdateLeft, UpdateForgotten or UpdateFailed; of an update
	// that could not be sent, what kept it from that.
	Type    string
	Message string
	// Reason is why it was rejected, one of history.UpdateRefused, UpdateUnknown, UpdateBadInput, UpdateMisused and UpdateTooMany; empty elsewhere.
	Reason string
	// Cause is what its handler, or the validator that refused it, returned, as it travels; nil elsewhere.
	Cause *history.Failure
}

func newCallUpdateError(t *replay.Task, f *history.Failure) *CallUpdateError {
	return &CallUpdateError{
		Update: t.Name(), UpdateID: replay.UpdateID(t), InstanceID: t.ReceiverID(), Type: f.Type, Message: f.Message, Reason: f.Reason, Cause: f.Cause,
	}
}

// Error implements error.
func (e *CallUpdateError) Error() string {
	return fmt.Sprintf("update %q (%s) of instance %q: %s: %s", e.Update, e.UpdateID, e.InstanceID, e.Type, e.Message)
}

// Is makes it one of the errors above.
func (e *CallUpdateError) Is(target error) bool {
	switch e.Type {
	case history.TypeNotFound:
		return target == ErrInstanceNotFound
	case history.TypeOver:
		return target == ErrInstanceOver
	case history.UpdatePurged:
		return target == ErrInstancePurged
	case history.UpdateRejection:
		return target == ErrUpdateRejected
	case history.UpdateLeft:
		return target == ErrUpdateLeft
	default:
		return false
	}
}

// As finds the details of what its handler returned, for DetailsOf.
func (e *CallUpdateError) As(target any) bool { return errdetails.As(target, nil, e.Cause) }

// Unwrap returns the engine's own error that its handler failed with, if it was one.
func (e *CallUpdateError) Unwrap() error {
	if e.Cause == nil {
		return nil
	}
	return engineErrorIn(e.Cause)
}

// CallUpdateOption is an option of CallUpdate and of CallEntity.
type CallUpdateOption interface{ applyToCallUpdate(c *updateCall) }

// updateCall is a call with its options.
type updateCall struct {
	replay.UpdateCall
	hasID, starts bool
	input         any
}

type updateIDOption string

func (id updateIDOption) applyToCallUpdate(c *updateCall) { c.ID, c.hasID = string(id), true }

// WithUpdateID names the update, instead of an id that derives from the caller's execution. Who sends one with the same id to the same instance, an
// orchestration or a client, joins it: it is taken once, with what came first, and all get the same answer, for 30 days. The id has 1 to 256
// bytes of UTF-8 without control characters.
func WithUpdateID(id string) CallUpdateOption { return updateIDOption(id) }

type startingWith struct {
	orchestration string
	input         any
}

func (s startingWith) applyToCallUpdate(c *updateCall) {
	c.starts, c.Orchestration, c.input = true, s.orchestration, s.input
}

// StartingWith has the update start an orchestration with the instance id where no instance has that, not even one that is over: with the input, in its
// highest version, with the update as the first that it takes. Where there is an instance, whatever its orchestration, the input is not used. An
// instance that is being purged is waited for. An empty name panics.
func StartingWith(orchestration string, input any) CallUpdateOption {
	mustName("orchestration", orchestration)
	return startingWith{orchestration, input}
}

// CallUpdate sends an update to another instance, whose code takes it with HandleUpdate, and returns the future of what its handler answers. It is
// taken exactly once, and updates that one execution sends to one instance arrive in the order in which they were sent, among the external events that
// it raises there: what it starts with that id before, is there before they come.
//
// The future settles when the handler has returned, however long that takes; an instance that is paused or blocked takes it when it goes on. Otherwise
// it settles with a *CallUpdateError: there is no such instance, or it is over, or purged, or ends before its handler returns, or the update was
// rejected, or failed. To have it sent it need not be awaited. It is sent when this turn is history, also if this orchestration ends in it, or is
// cancelled later. The cancel of the future gives up the answer alone: who may give up waits for it beside a timer. In a cancelled scope nothing is sent.
//
// Updates to one instance are sent one after the other, about a hundred a second. An orchestration that calls itself waits for its own
// handler, which runs beside it. An id of another form than WithInstanceID takes, a name of more than 256 bytes or with control characters, and an input
// that does not encode, or of more than MaxPayloadBytes, fail the future, and nothing is sent. An empty name panics.
func CallUpdate[Out any](ctx *OrchestrationContext, instanceID, name string, in any, opts ...CallUpdateOption) *Future[Out] {
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

// complete adds the inputs, if all is well.
func (c *updateCall) complete(ctx *OrchestrationContext, in any) (err error) {
	if err := c.check(); err != nil {
		return fmt.Errorf("perdure: CallUpdate of %q: %w", bounded(c.Name), err)
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
	return checkShort("update id", c.ID)
}

// checkShort holds a text against the rule that clients' are held against.
func checkShort(what, s string) error {
	if s == "" || len(s) > maxNameBytes || !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
		return fmt.Errorf("the %s must be 1 to %d bytes of UTF-8 without control characters, has %d bytes", what, maxNameBytes, len(s))
	}
	return nil
}
