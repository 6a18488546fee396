package perdure

import (
	"errors"

	"github.com/perdure/perdure/internal/names"
	"github.com/perdure/perdure/internal/usercode"
)

// UpdateHandlerOption is an option of SetUpdateHandler.
type UpdateHandlerOption interface {
	applyToUpdateHandler(o *usercode.UpdateOptions)
}

type updateHandlerOption func(o *usercode.UpdateOptions)

func (set updateHandlerOption) applyToUpdateHandler(o *usercode.UpdateOptions) { set(o) }

// WithValidator sets a validator that accepts or rejects each update before its handler runs. If validate returns an
// error, the update is rejected with that error and has no effect. The history stores its ID and the error. With
// several validators, the first error applies.
//
// validate reads the variables of the orchestration and must not change them, because it does not run in a replay. The
// update is rejected if validate schedules work, waits or makes another decision, or panics. validate may depend on
// anything and may be changed at any time. It runs within the turn: a validator that runs for more than 10 seconds
// blocks the instance. Its parameter type must be the input type of the handler, otherwise SetUpdateHandler returns an
// error.
func WithValidator[In any](validate func(In) error) UpdateHandlerOption {
	return updateHandlerOption(func(o *usercode.UpdateOptions) { o.Validators = append(o.Validators, validate) })
}

// Serialized runs the handlers that have this option one at a time, in the order in which their updates arrived. The
// names of the updates do not matter. An update waits until the handlers of all earlier updates have returned. When the
// orchestration continues as new, waiting updates are passed to the next execution and run before later ones. At most
// 1,000 updates run or wait at a time. Further updates are rejected.
func Serialized() UpdateHandlerOption {
	return updateHandlerOption(func(o *usercode.UpdateOptions) { o.Serialized = true })
}

// SetUpdateHandler sets the handler of an update, which clients send with Client.Update and orchestrations with
// CallUpdate. A later call for the same name replaces the handler. Set handlers at the start of the orchestration,
// before it waits, so that they handle an update that is sent with the start. An update without a handler is rejected.
// After a continue-as-new, the next execution must set its own handlers.
//
// handler runs as a coroutine in the scope of ctx for each accepted update. It can change the orchestration's
// variables, schedule work and wait. Its result is the response to the sender. Handlers that wait run concurrently. An
// error of handler is only a response, but a panic fails the orchestration. When the scope of ctx is cancelled, handler
// continues and its waits end. handler cannot return ContinueAsNew. When the orchestration ends or continues as new,
// running handlers are abandoned and their senders get an error. Use AwaitUpdateHandlers to wait for running handlers.
//
// An update is handled once per update ID; see Client.Update. An execution runs at most 1,000 handlers at a time and
// rejects further updates. The input and the result are stored in the history, and are at most MaxPayloadBytes each.
//
// SetUpdateHandler returns an error if name is empty, longer than 256 bytes or not valid UTF-8. It also returns an
// error if handler is nil or a validator has another parameter type. It makes no decision, so you can add it to code of
// running instances. Do not remove a handler while histories of running instances contain its updates.
func SetUpdateHandler[In, Out any](
	ctx *OrchestrationContext, name string, handler func(*OrchestrationContext, In) (Out, error),
	opts ...UpdateHandlerOption,
) error {
	if err := names.CheckHandler("SetUpdateHandler", name, handler != nil); err != nil {
		return err
	}
	return handleUpdate(ctx, name, func(ctx *OrchestrationContext, in In, _ int) (Out, error) {
		return handler(ctx, in)
	}, opts...)
}

// handleUpdate is like SetUpdateHandler for a handler that also receives the number of bytes of its input.
func handleUpdate[In, Out any](
	ctx *OrchestrationContext, name string, handler func(*OrchestrationContext, In, int) (Out, error),
	opts ...UpdateHandlerOption,
) error {
	var o usercode.UpdateOptions
	for _, opt := range opts {
		opt.applyToUpdateHandler(&o)
	}
	h, err := usercode.Update(&adapter, ctx.execution(), name, o, handler)
	if err != nil {
		return err
	}
	ctx.replay.SetUpdateHandler(name, h)
	return nil
}

// AwaitUpdateHandlers waits until no update handler is running. Call it before the orchestration ends or continues as
// new. If ctx is cancelled before, it returns the CancelledError of ctx. Use a context of WithoutCancel to wait despite
// a cancellation. In an update handler it returns an error. In a coroutine that an update handler awaits, it waits
// forever.
func AwaitUpdateHandlers(ctx *OrchestrationContext) error {
	cancelled, own := ctx.replay.AwaitUpdates()
	switch {
	case own:
		return errors.New("perdure: AwaitUpdateHandlers: called in an update handler; it would wait for itself")
	case cancelled != nil:
		return cancelledError(cancelled)
	default:
		return nil
	}
}
