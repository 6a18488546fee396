package perdure

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/internal/replay"
)

const (
	// entityOperations and entityBytes are how many operations, and how much of inputs, outputs and states, an execution of an entity has in its history
	// before it continues as new. A query replays as much.
	entityOperations = 1000
	entityBytes      = 4 << 20
	// entityHandsOn is behind how many parked inputs an entity does not continue as new yet: a commit has to hold what it hands on.
	entityHandsOn = 500
	// EntityStateQuery is the query that the state of an entity is read with: Client.EntityState asks it.
	EntityStateQuery = "perdure.state"
)

// EntityOrchestration is the name of the orchestration that an entity's instances are of: "@" and the entity's name.
func EntityOrchestration(entity string) string { return registry.EntityMark + entity }

// EntityInstanceID is the id of the instance that an entity's key has: "@", the entity's name, "@" and the key.
func EntityInstanceID(entity, key string) string {
	return registry.EntityMark + entity + registry.EntityMark + key
}

// EntityOperation is an operation of an entity with a state of type S. Operation makes it.
type EntityOperation[S any] struct {
	name   string
	handle func(ctx *OrchestrationContext, e *entity[S]) error
}

// OperationOption is an option of Operation.
type OperationOption interface{ applyToOperation(o *operationOptions) }

type operationOptions struct{ deletes bool }

type deletesState struct{}

func (deletesState) applyToOperation(o *operationOptions) { o.deletes = true }

// DeletesState has an operation delete the entity's state, once it has succeeded: the next operation finds the zero value of S, and Client.EntityState
// nothing. The instance stays, and goes on with what comes next, so that no call is lost between two lives; Client.Purge takes it away.
func DeletesState() OperationOption { return deletesState{} }

// Operation is an operation of an entity: fn gets the state, which it may change, and what the call gives to it, and returns the call's result. It is code
// of an orchestration, and follows the same rules: it may call activities, wait, and call other entities. While it waits no other operation of the key
// begins. An error that it returns, or a panic, is the answer to the call, and leaves the state as it was before. An entity that calls itself, or is called
// back by what it calls, waits for ever. It panics when the name is empty, longer than 256 bytes, not UTF-8 or has control characters, and when fn is nil.
func Operation[S, In, Out any](name string, fn func(ctx *OrchestrationContext, state *S, in In) (Out, error), opts ...OperationOption) EntityOperation[S] {
	mustName("operation", name)
	if err := checkShort("name", name); err != nil {
		panic("perdure: operation: " + err.Error())
	}
	if fn == nil {
		panic("perdure: operation " + name + ": nil function")
	}
	var o operationOptions
	for _, opt := range opts {
		opt.applyToOperation(&o)
	}
	return EntityOperation[S]{name: name, handle: func(ctx *OrchestrationContext, e *entity[S]) error {
		return handleUpdate(ctx, name, func(ctx *OrchestrationContext, in In, bytes int) (Out, error) {
			defer e.wear(ctx, bytes+len(e.state))
			return operate(ctx, e, name, fn, in, o.deletes)
		}, OneAtATime(), ValidateUpdate(func(In) error { return e.ending }))
	}}
}

// AddEntity registers an entity: a state of type S for each key, and the operations on it. Those of one key run one at a time, in the order in which
// they arrive. The first call of a key makes its instance, with the zero value of S; nobody starts it. The state is JSON, of at most MaxPayloadBytes: an
// operation that makes it larger fails.
//
// A key is an instance, of the orchestration EntityOrchestration and with the id EntityInstanceID: lists, the page, queries, Pause and Purge
// have it as any other. It continues as new by itself after a thousand operations, or some MB of them, and loses none. A purge deletes it with its state,
// and the next call makes it anew. One that was cancelled or terminated is over, and takes no call until it is purged; until what came before the cancel is done,
// calls are rejected.
//
// Of one key a few hundred operations a second are taken, and a thousand may wait; what comes beyond is rejected with history.UpdateTooMany. An operation
// that calls in instances under way need may be added; one of which a call is under way must stay, as other code does.
//
// It panics when the name is empty or has an "@", there is no operation or two of one name, and when the name is taken.
func AddEntity[S any](r *Registry, name string, operations ...EntityOperation[S]) {
	mustEntity(name)
	if len(operations) == 0 {
		panic("perdure: entity " + name + " has no operation")
	}
	known := map[string]bool{}
	for i := range operations {
		if known[operations[i].name] {
			panic("perdure: entity " + name + " has two operations " + operations[i].name)
		}
		known[operations[i].name] = true
	}
	AddOrchestration(r, EntityOrchestration(name), func(ctx *OrchestrationContext, state json.RawMessage) (struct{}, error) {
		return live(ctx, operations, state)
	})
}

// entity is an execution of one.
type entity[S any] struct {
	state json.RawMessage // nil: none
	taken int             // operations
	bytes int             // of what they have left in history
	worn  *replay.Task    // settles when history is long enough
	// ending is why it takes no more operations; nil while it does.
	ending error
}

// errEntityEnds is why a cancelled entity takes no more: under load there is always one more, and it would never end.
var errEntityEnds = errors.New("the entity is cancelled: it ends when the operations are done that came before")

// live is the orchestration of an entity.
func live[S any](ctx *OrchestrationContext, operations []EntityOperation[S], state json.RawMessage) (struct{}, error) {
	e := &entity[S]{worn: replay.NewSignal(ctx.replay)}
	e.set(state)
	err := SetQueryHandler(ctx, EntityStateQuery, func(struct{}) (json.RawMessage, error) { return e.state, nil })
	for i := range operations {
		err = errors.Join(err, operations[i].handle(ctx, e))
	}
	if err != nil {
		return struct{}{}, err
	}

	if c := ctx.replay.Await(e.worn); c != nil { // what was accepted is dealt with, its waits being cancelled
		e.ending = errEntityEnds
		return struct{}{}, errors.Join(cancelledError(c), UpdatesDone(WithoutCancel(ctx)))
	}
	return ContinueAsNew[struct{}](ctx, e.state)
}

// set makes a document the state.
func (e *entity[S]) set(doc json.RawMessage) {
	e.state = nil
	if len(doc) > 0 && string(doc) != "null" {
		e.state = doc
	}
}

// operate runs an operation on a copy of the state, which takes its place when the operation has succeeded.
func operate[S, In, Out any](ctx *OrchestrationContext, e *entity[S], name string, fn func(*OrchestrationContext, *S, In) (Out, error), in In, deletes bool) (out Out, err error) {
	var state S
	if e.state != nil {
		if err := decode(payload{input, orchestration, ctx.name}, e.state, &state); err != nil {
			return out, err
		}
	}
	if out, err = attempt(ctx, fn, &state, in); err != nil {
		return out, err
	}
	// What cannot be answered has not succeeded either.
	answer, err := ctx.encode(payload{output, update, name}, out)
	if err != nil {
		return out, err
	}
	e.bytes += len(answer)
	if deletes {
		e.set(nil)
		return out, nil
	}
	doc, err := ctx.encode(payload{input, orchestration, ctx.name}, state)
	if err != nil {
		return out, fmt.Errorf("the state: %w", err)
	}
	e.set(doc)
	return out, nil
}

// wear counts an operation with what it was given, and has the entity continue as new when there were enough. What was parked in a pause may be a hundred
// thousand operations: it takes these first.
func (e *entity[S]) wear(ctx *OrchestrationContext, bytes int) {
	e.taken++
	e.bytes += bytes
	if (e.taken >= entityOperations || e.bytes >= entityBytes) && replay.ParkedBehind(ctx.replay) <= entityHandsOn {
		replay.Signal(ctx.replay, e.worn)
	}
}

// attempt calls an operation. Its panic is its failure, since it has changed nothing but a copy.
func attempt[S, In, Out any](ctx *OrchestrationContext, fn func(*OrchestrationContext, *S, In) (Out, error), state *S, in In) (out Out, err error) {
	returned := false
	defer func() {
		if returned || !replay.MayRecover(ctx.replay) {
			return
		}
		if r := recover(); r != nil {
			err = failureError(replay.Panicked(r))
		}
	}()
	out, err = fn(ctx, state, in)
	returned = true
	return out, err
}

// CallEntity calls an operation of the entity that a key has, which is made where there is none, and returns the future of its result. It is CallUpdate of
// that instance, and starts it: see there for what it may fail with, a *CallUpdateError. WithUpdateID gives the call an id that others may join. It panics
// when the entity's name is empty or has an "@".
func CallEntity[Out any](ctx *OrchestrationContext, entity, key, operation string, in any, opts ...CallUpdateOption) *Future[Out] {
	mustEntity(entity)
	return CallUpdate[Out](ctx, EntityInstanceID(entity, key), operation, in, append([]CallUpdateOption{StartingWith(EntityOrchestration(entity), nil)}, opts...)...)
}

// mustEntity panics where no entity can have the name: what is behind an "@" would be part of a key.
func mustEntity(name string) {
	mustName("entity", name)
	if registry.HasKey(name) {
		panic("perdure: entity " + name + ": the name has an " + registry.EntityMark)
	}
}

// failureError is a failure as an error.
func failureError(f *history.Failure) error { return &operationError{f} }

// operationError is the panic of an operation.
type operationError struct{ failure *history.Failure }

// Error implements error.
func (e *operationError) Error() string { return e.failure.Message }

// ErrorType names the error where it travels.
func (e *operationError) ErrorType() string { return e.failure.Type }
