package entities

import (
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/internal/failures"
	"github.com/perdure/perdure/internal/payloadjson"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/internal/usercode"
)

// Operation is an operation of an entity with a state of type S.
type Operation struct {
	Name string
	// DeletesState is true if the operation deletes the state after it has succeeded.
	DeletesState bool
}

// Call is a call of an operation.
type Call struct {
	Operation

	Orchestration string // the name of the entity's orchestration
	InputBytes    int
}

// Operate runs an operation on a copy of the state. If the operation succeeds, the copy becomes the state.
func Operate[S, Out any](
	a *usercode.Adapter, c *replay.Context, e *Execution, call Call, run func(state *S) (Out, error),
) (out Out, err error) {
	defer e.endOperation(c, call.InputBytes+len(e.state))
	var state S
	of := payloadjson.Input(payloadjson.Orchestration, call.Orchestration)
	if err := payloadjson.Decode(of, e.state, &state); err != nil {
		return out, err
	}
	// A panic fails only the operation, because run has changed only a copy of the state.
	if f := c.Attempt(func() { out, err = run(&state) }); f != nil {
		err = &failures.Error{Failure: f}
	}
	if err != nil {
		return out, err
	}
	response, err := a.EncodeFor(c, payloadjson.Output(payloadjson.Update, call.Name), out)
	if err != nil {
		return out, err // the operation fails, because it has no response
	}
	e.bytes += len(response)
	var doc json.RawMessage
	if !call.DeletesState {
		if doc, err = a.EncodeFor(c, of, state); err != nil {
			return out, fmt.Errorf("entity state: %w", err)
		}
	}
	e.setState(doc)
	return out, nil
}

// MustOperations panics if an entity cannot have operations of these names.
func MustOperations(entity string, operations []string) {
	if len(operations) == 0 {
		panic(fmt.Sprintf("perdure: entity %q: no operations", entity))
	}
	known := map[string]bool{}
	for _, name := range operations {
		if known[name] {
			panic(fmt.Sprintf("perdure: entity %q: duplicate operation %q", entity, name))
		}
		known[name] = true
	}
}
