package usercode

import (
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/payloadjson"
	"github.com/perdure/perdure/internal/replay"
)

// UpdateOptions are the options of an update handler.
type UpdateOptions struct {
	Validators []any // of type func(In) error
	Serialized bool
}

// Update returns the handler of an update. handler also receives the number of bytes of its input. Update returns an
// error if a validator has another input type than the handler.
func Update[C, In, Out any](
	a *Adapter, x Execution[C], name string, o UpdateOptions, handler func(C, In, int) (Out, error),
) (h replay.UpdateHandler, err error) {
	validators := make([]func(In) error, len(o.Validators))
	for i, v := range o.Validators {
		validate, fits := v.(func(In) error)
		if !fits || validate == nil {
			return h, fmt.Errorf("perdure: SetUpdateHandler %q: validator has type %T, but the handler takes %T",
				name, v, *new(In))
		}
		validators[i] = validate
	}
	return replay.UpdateHandler{
		Serialized: o.Serialized,
		Validate:   func(doc json.RawMessage) *replay.UpdateRejection { return validate(a, name, validators, doc) },
		Run: func(doc json.RawMessage) (json.RawMessage, *history.Failure) {
			out, err := update(a, x, name, handler, doc)
			if err != nil {
				return nil, a.Failure(err)
			}
			return out, nil
		},
	}, nil
}

// validate returns the rejection of an update, or nil if the update is accepted.
func validate[In any](
	a *Adapter, name string, validators []func(In) error, doc json.RawMessage,
) *replay.UpdateRejection {
	var in In
	if err := payloadjson.Decode(payloadjson.Input(payloadjson.Update, name), doc, &in); err != nil {
		return &replay.UpdateRejection{Reason: history.RejectedInput, Failure: a.Failure(err)}
	}
	for _, validate := range validators {
		if err := validate(in); err != nil {
			return &replay.UpdateRejection{Reason: history.RejectedByValidator, Failure: a.Failure(err)}
		}
	}
	return nil
}

func update[C, In, Out any](
	a *Adapter, x Execution[C], name string, handler func(C, In, int) (Out, error), doc json.RawMessage,
) (json.RawMessage, error) {
	var in In
	if err := payloadjson.Decode(payloadjson.Input(payloadjson.Update, name), doc, &in); err != nil {
		return nil, err
	}
	out, err := handler(x.Context, in, len(doc))
	if err != nil {
		return nil, err
	}
	return a.EncodeFor(x.Replay, payloadjson.Output(payloadjson.Update, name), out)
}
