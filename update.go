package perdure

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

// maxNameBytes bounds the names of events, updates and operations, and the ids of updates.
const maxNameBytes = 256

// UpdateHandlerOption is an option of HandleUpdate.
type UpdateHandlerOption interface{ applyToUpdateHandler(o *updateHandlerOptions) }

type updateHandlerOptions struct {
	validators []any
	oneAtATime bool
}

type validatorOption struct{ validate any }

func (v validatorOption) applyToUpdateHandler(o *updateHandlerOptions) {
	o.validators = append(o.validators, v.validate)
}

// ValidateUpdate has validate say of each update whether it is accepted, before its handler runs: an error rejects it, and is what its sender
// gets. What is rejected has changed nothing, and leaves its id and the error in history. Of several the first error counts.
//
// validate sees the variables of the orchestration, and must only read them: what it changes, no replay changes again. One that schedules, waits,
// or calls anything else that the orchestration would decide rejects the update, as one does that panics. It runs once for each update, and never
// in a replay, so it may depend on anything and may be changed at any time; but it runs within the turn, and one that does not come back within ten
// seconds blocks the instance. It takes what the handler takes: the type of another is an error of HandleUpdate.
func ValidateUpdate[In any](validate func(In) error) UpdateHandlerOption {
	return validatorOption{validate}
}

type oneAtATime struct{}

func (oneAtATime) applyToUpdateHandler(o *updateHandlerOptions) { o.oneAtATime = true }

// OneAtATime has the handler run once all updates are over that were accepted before for handlers with this option, whatever their names: such
// updates are dealt with one after the other, in the order of their arrival, also where their handlers wait. What waits for its turn when the
// orchestration continues as new is not left: the next execution has it, before anything that comes later. A thousand wait at the most, together with
// the handlers that run; what comes beyond is rejected.
func OneAtATime() UpdateHandlerOption { return oneAtATime{} }

// HandleUpdate has handler take the updates of a name, which clients send (Client.Update), from here on; the last one that is set for a name counts.
// Set it at the beginning, before the orchestration waits: then it is there for an update that comes with the start. An update that finds no
// handler is rejected. An execution that follows by continue-as-new sets its own.
//
// For each update that is accepted handler runs as a coroutine of the orchestration, as by Async, in the scope of ctx: it changes the orchestration's
// variables, schedules, waits, and what it returns is the answer to who has sent the update. Handlers that wait run side by side. An error
// that it returns is an answer, and no more; a panic fails the orchestration, since half a change may be made. When the
// orchestration ends or continues as new, handlers that have not returned are given up, and their senders are told so: UpdatesDone waits for them. When the
// scope of ctx is cancelled the handler goes on, and its waits end. It cannot return ContinueAsNew: that is for the orchestration.
//
// An update has an id, by which it is taken once, however often it is sent; see Client.Update. An execution runs a thousand handlers at a time: what
// comes beyond is rejected. History keeps the input of each update, and what its handler returned, both of at most MaxPayloadBytes, or MaxLargePayloadBytes on a hub with a bucket for large payloads.
//
// The error is for a name that is empty, longer than 256 bytes or not UTF-8, for a nil handler, and for a validator that takes another input. It
// decides nothing and waits for nothing, so it may be added to code whose instances are under way. One that has taken updates which are
// in the history of instances under way must stay, as other code does.
func HandleUpdate[In, Out any](ctx *OrchestrationContext, name string, handler func(*OrchestrationContext, In) (Out, error), opts ...UpdateHandlerOption) error {
	switch {
	case name == "" || len(name) > maxNameBytes || !utf8.ValidString(name):
		return fmt.Errorf("perdure: HandleUpdate: the name of an update has 1 to %d bytes of UTF-8, is %q", maxNameBytes, bounded(name))
	case handler == nil:
		return errors.New("perdure: HandleUpdate: the handler of update " + name + " is nil")
	}
	return handleUpdate(ctx, name, func(ctx *OrchestrationContext, in In, _ int) (Out, error) { return handler(ctx, in) }, opts...)
}

// handleUpdate is HandleUpdate, whose handler gets how many bytes its input has, too.
func handleUpdate[In, Out any](ctx *OrchestrationContext, name string, handler func(*OrchestrationContext, In, int) (Out, error), opts ...UpdateHandlerOption) error {
	var o updateHandlerOptions
	for _, opt := range opts {
		opt.applyToUpdateHandler(&o)
	}
	validators := make([]func(In) error, len(o.validators))
	for i, v := range o.validators {
		validate, fits := v.(func(In) error)
		if !fits || validate == nil {
			return fmt.Errorf("perdure: HandleUpdate: the validator of update %q is a %T, and its handler takes a %T", name, v, *new(In))
		}
		validators[i] = validate
	}

	replay.SetUpdateHandler(ctx.replay, name, replay.UpdateHandler{
		OneAtATime: o.oneAtATime,
		Judge:      func(doc json.RawMessage) *replay.UpdateRefusal { return judgeUpdate(name, validators, doc) },
		Run: func(doc json.RawMessage) (json.RawMessage, *history.Failure) {
			out, err := runUpdate(ctx, name, handler, doc)
			if err != nil {
				return nil, failureOf(err)
			}
			return out, nil
		},
	})
	return nil
}

// judgeUpdate says why an update is refused; nil where it is not.
func judgeUpdate[In any](name string, validators []func(In) error, doc json.RawMessage) *replay.UpdateRefusal {
	var in In
	if err := decode(payload{input, update, name}, doc, &in); err != nil {
		return &replay.UpdateRefusal{Reason: history.UpdateBadInput, Failure: failureOf(err)}
	}
	for _, validate := range validators {
		if err := validate(in); err != nil {
			return &replay.UpdateRefusal{Reason: history.UpdateRefused, Failure: failureOf(err)}
		}
	}
	return nil
}

func runUpdate[In, Out any](ctx *OrchestrationContext, name string, handler func(*OrchestrationContext, In, int) (Out, error), doc json.RawMessage) (json.RawMessage, error) {
	var in In
	if err := decode(payload{input, update, name}, doc, &in); err != nil {
		return nil, err
	}
	out, err := handler(ctx, in, len(doc))
	if err != nil {
		return nil, err
	}
	return ctx.encode(payload{output, update, name}, out)
}

// UpdatesDone waits until no handler of an update runs, so that an orchestration which ends or continues as new then leaves none. It returns the
// CancelledError of ctx when that is cancelled before; WithoutCancel waits through a cancel. In the handler of an update it would wait for itself, and
// returns an error; in a coroutine (Async) that a handler awaits it waits for ever, and the update stays pending: there it is not looked for.
func UpdatesDone(ctx *OrchestrationContext) error {
	cancelled, own := replay.AwaitUpdates(ctx.replay)
	switch {
	case own:
		return errors.New("perdure: UpdatesDone in the handler of an update would wait for that handler")
	case cancelled != nil:
		return cancelledError(cancelled)
	default:
		return nil
	}
}
