// Package usercode calls the functions of user code with the JSON documents of the engine. It decodes their inputs,
// encodes their results within the limits, and converts their errors to failures.
package usercode

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/activityctx"
	"github.com/perdure/perdure/internal/failures"
	"github.com/perdure/perdure/internal/payloadjson"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/internal/replay"
)

// Adapter has the limits and the errors of package perdure, which this package cannot import.
type Adapter struct {
	// MaxBytes is the maximum size of a document, and MaxLargeBytes is its maximum size on a hub with a payload store.
	MaxBytes, MaxLargeBytes int
	// TooLarge returns the error of a document that exceeds its limit.
	TooLarge func(of payloadjson.Name, bytes, limit int) error
	// Failure returns the failure of an error.
	Failure func(err error) *history.Failure
	// Pending is the error of an activity that is completed asynchronously.
	Pending error
}

// Encode encodes a value as a document of at most limit bytes.
func (a *Adapter) Encode(of payloadjson.Name, v any, limit int) (json.RawMessage, error) {
	doc, err := payloadjson.Encode(of, v)
	if err == nil && len(doc) > limit {
		return nil, a.TooLarge(of, len(doc), limit)
	}
	return doc, err
}

// EncodeFor encodes a value within the limit of the turn. A replay uses the limit that the turn had.
func (a *Adapter) EncodeFor(c *replay.Context, of payloadjson.Name, v any) (json.RawMessage, error) {
	return a.Encode(of, v, a.limit(c.TakesLargePayloads()))
}

// limit returns the limit of a document with or without a payload store.
func (a *Adapter) limit(store bool) int {
	if store {
		return a.MaxLargeBytes
	}
	return a.MaxBytes
}

// Activity runs the code of an activity. Package perduretest searches stack traces for the name of this function.
func Activity[In, Out any](
	ctx context.Context, a *Adapter, name string, fn func(context.Context, In) (Out, error), doc json.RawMessage,
) (out json.RawMessage, f *history.Failure) {
	defer failures.Recover(&out, &f)
	var in In
	if err := payloadjson.Decode(payloadjson.Input(payloadjson.Activity, name), doc, &in); err != nil {
		return nil, a.Failure(err)
	}
	v, err := fn(ctx, in)
	if errors.Is(err, a.Pending) {
		return nil, &history.Failure{Type: registry.TypePending, Message: err.Error()}
	}
	if err != nil {
		return nil, a.Failure(err)
	}
	of := payloadjson.Result(payloadjson.Activity, name)
	out, err = a.Encode(of, v, a.limit(activityctx.TakesLargePayloads(ctx)))
	if err != nil {
		return nil, a.Failure(err)
	}
	return out, nil
}

// Execution is an execution of an orchestration whose functions have a parameter of type C.
type Execution[C any] struct {
	Name    string // of the orchestration
	Replay  *replay.Context
	Context C
}

// Orchestration runs the code of an orchestration. Package perduretest searches stack traces for the name of this
// function.
func Orchestration[C, In, Out any](
	a *Adapter, x Execution[C], fn func(C, In) (Out, error), doc json.RawMessage,
) (json.RawMessage, error) {
	var in In
	if err := payloadjson.Decode(payloadjson.Input(payloadjson.Orchestration, x.Name), doc, &in); err != nil {
		return nil, err
	}
	out, err := fn(x.Context, in)
	if err != nil {
		return nil, err
	}
	return a.EncodeFor(x.Replay, payloadjson.Output(payloadjson.Orchestration, x.Name), out)
}

// Query runs the handler of a query. Its result has at most limit bytes.
func Query[In, Out any](
	a *Adapter, name string, limit int, handler func(In) (Out, error), doc json.RawMessage,
) replay.QueryOutput {
	var in In
	if err := payloadjson.Decode(payloadjson.Input(payloadjson.Query, name), doc, &in); err != nil {
		return replay.QueryOutput{Failure: a.Failure(err), BadInput: true}
	}
	out, err := handler(in)
	if err != nil {
		return replay.QueryOutput{Failure: a.Failure(err)}
	}
	answer, err := a.Encode(payloadjson.Output(payloadjson.Query, name), out, limit)
	if err != nil {
		f := a.Failure(err)
		return replay.QueryOutput{Failure: f, TooLarge: f.Type == history.TypePayloadTooLarge}
	}
	return replay.QueryOutput{Output: answer}
}

// SideEffect produces the value of a side effect, or reads it from the history. A failure is recorded too.
func SideEffect[T any](a *Adapter, c *replay.Context, fn func() T) (value T, f *history.Failure) {
	of := payloadjson.SideEffect()
	f = c.SideEffect(replay.SideEffect{
		Produce: func() (json.RawMessage, *history.Failure) { return produce(a, c, fn, &value) },
		Accept:  func(doc json.RawMessage) error { return payloadjson.Decode(of, doc, &value) },
	})
	return value, f
}

// produce sets value to the value that a replay will read.
func produce[T any](a *Adapter, c *replay.Context, fn func() T, value *T) (doc json.RawMessage, f *history.Failure) {
	defer failures.Recover(&doc, &f)
	of := payloadjson.SideEffect()
	doc, err := a.EncodeFor(c, of, fn())
	if err == nil {
		err = payloadjson.Decode(of, doc, value)
	}
	if err != nil {
		return nil, a.Failure(err)
	}
	return doc, nil
}
