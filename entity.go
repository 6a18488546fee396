package perdure

import (
	"encoding/json"
	"errors"

	"github.com/perdure/perdure/internal/entities"
	"github.com/perdure/perdure/internal/names"
)

// EntityStateQuery is the name of the query that returns the state of an entity. Client.EntityState uses it.
const EntityStateQuery = "perdure.state"

// EntityOrchestrationName returns the name of the orchestration that an entity's instances run: "@" and the entity's
// name.
func EntityOrchestrationName(entity string) string { return entities.Mark + entity }

// EntityInstanceID returns the instance ID of an entity's key: "@", the entity's name, "@" and the key.
func EntityInstanceID(entity, key string) string {
	return entities.Mark + entity + entities.Mark + key
}

// EntityOperation is an operation of an entity with a state of type S. Create it with Operation.
type EntityOperation[S any] struct {
	name   string
	handle func(ctx *OrchestrationContext, e *entities.Execution) error
}

// OperationOption is an option of Operation.
type OperationOption interface{ applyToOperation(o *entities.Operation) }

type operationOption func(o *entities.Operation)

func (set operationOption) applyToOperation(o *entities.Operation) { set(o) }

// DeleteState deletes the entity's state after the operation has succeeded. The next operation gets the zero value of
// S, and Client.EntityState returns nothing. The instance continues to run, so that no call is lost. Use Client.Purge
// to delete the instance.
func DeleteState() OperationOption {
	return operationOption(func(o *entities.Operation) { o.DeletesState = true })
}

// Operation creates an operation of an entity. fn receives the input of the call and a pointer to the state, and
// returns the result of the call. fn may change the state. fn is orchestration code. It may call activities, wait, and
// call other entities. Other operations of the key do not start while fn waits. If fn returns an error or panics, the
// caller gets the error and the state does not change. An entity that calls itself, directly or through another entity,
// waits forever.
//
// Operation panics if name is empty, longer than 256 bytes, not valid UTF-8 or has control characters, or if fn is nil.
func Operation[S, In, Out any](
	name string, fn func(ctx *OrchestrationContext, state *S, in In) (Out, error), opts ...OperationOption,
) EntityOperation[S] {
	names.MustOperation(name, fn != nil)
	o := entities.Operation{Name: name}
	for _, opt := range opts {
		opt.applyToOperation(&o)
	}
	return EntityOperation[S]{name: name, handle: func(ctx *OrchestrationContext, e *entities.Execution) error {
		return handleUpdate(ctx, name, func(ctx *OrchestrationContext, in In, bytes int) (Out, error) {
			call := entities.Call{Operation: o, Orchestration: ctx.name, InputBytes: bytes}
			return entities.Operate(&adapter, ctx.replay, e, call, func(state *S) (Out, error) {
				return fn(ctx, state, in)
			})
		}, Serialized(), WithValidator(func(In) error { return e.Rejection() }))
	}}
}

// AddEntity registers an entity: a state of type S for each key, and its operations. Operations of one key run one at a
// time, in the order in which their calls arrive. The first call of a key creates its instance, with the zero value of
// S. The state is JSON of at most MaxPayloadBytes. An operation that exceeds the limit fails.
//
// Each key is an instance, with the orchestration EntityOrchestrationName and the ID EntityInstanceID. It continues as
// new after 1,000 operations or 4 MiB of inputs, outputs and states, without losing calls. Purging the instance deletes
// the state, and the next call creates the instance again. Calls of an entity that was cancelled or terminated fail
// with ErrInstanceEnded until it is purged. A cancelled entity first completes the operations that it accepted before,
// and rejects new ones.
//
// One key handles a few hundred operations a second, and up to 1,000 calls can wait. Further calls are rejected with
// history.RejectedLimit. You may add an operation while instances run. Do not remove an operation while a call of it
// runs.
//
// AddEntity panics if name is empty, is not valid UTF-8, contains "@" or is already registered. It also panics without
// an operation, or if two operations have the same name.
func AddEntity[S any](r *Registry, name string, operations ...EntityOperation[S]) {
	entities.MustName(name)
	known := make([]string, len(operations))
	for i := range operations {
		known[i] = operations[i].name
	}
	entities.MustOperations(name, known)
	AddOrchestration(r, EntityOrchestrationName(name),
		func(ctx *OrchestrationContext, state json.RawMessage) (struct{}, error) {
			return runEntity(ctx, operations, state)
		})
}

func runEntity[S any](
	ctx *OrchestrationContext, operations []EntityOperation[S], state json.RawMessage,
) (struct{}, error) {
	e := entities.Start(ctx.replay, state)
	err := SetQueryHandler(ctx, EntityStateQuery, func(struct{}) (json.RawMessage, error) { return e.State(), nil })
	for i := range operations {
		err = errors.Join(err, operations[i].handle(ctx, e))
	}
	if err != nil {
		return struct{}{}, err
	}

	if c := e.AwaitFull(ctx.replay); c != nil { // accepted operations complete, but their waits are cancelled
		return struct{}{}, errors.Join(cancelledError(c), AwaitUpdateHandlers(WithoutCancel(ctx)))
	}
	return ContinueAsNew[struct{}](ctx, e.State())
}

// CallEntity calls an operation of an entity and returns the future of its result. It creates the instance of the key
// if it does not exist. The call is an update as with CallUpdate, and its future fails with the same *CallUpdateError.
// Calls with the same WithUpdateID run once and get the same result. CallEntity panics if the entity's name or the
// operation is empty or not valid UTF-8, or if the entity's name contains "@".
func CallEntity[Out any](
	ctx *OrchestrationContext, entity, key, operation string, in any, opts ...CallUpdateOption,
) *Future[Out] {
	entities.MustName(entity)
	return CallUpdate[Out](ctx, EntityInstanceID(entity, key), operation, in,
		append([]CallUpdateOption{WithStart(EntityOrchestrationName(entity), nil)}, opts...)...)
}
