package completion

import (
	"context"
	"encoding/json"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client/internal/hub"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/clientcall"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/provider"
)

// Complete completes the attempt of a token with a result.
func (a *Attempts) Complete(ctx context.Context, token string, result any) error {
	doc, err := EncodeResult(result, a.hub.Encoding.Limit())
	if err != nil {
		return err
	}
	return a.end(ctx, clientcall.Complete, token, provider.ActivityOutcome{Result: doc})
}

// Fail fails the attempt of a token with an error, as if its activity had returned the error. It returns a
// *provider.FieldError if the error does not end an attempt.
func (a *Attempts) Fail(ctx context.Context, token string, err error) error {
	failure, err := FailureFor(ctx, err)
	if err != nil {
		return err
	}
	return a.end(ctx, clientcall.Fail, token, provider.ActivityOutcome{Error: failure})
}

// EncodeResult encodes the result of an attempt as a payload of at most limit bytes.
func EncodeResult(result any, limit int) (history.Payload, error) {
	return hub.Encode("result", result, limit)
}

// FailureFor returns the failure of an attempt that fails with cause.
func FailureFor(ctx context.Context, cause error) (*history.Failure, error) {
	failure := failureFor(ctx, cause)
	if failure == nil {
		return nil, &provider.FieldError{Field: "error", Problem: "must not be nil or ErrPending"}
	}
	if failure.DetailsOmitted != "" {
		return nil, &provider.FieldError{
			Field: "error.details", Problem: "cannot be encoded: " + failure.DetailsOmitted,
		}
	}
	return failure, nil
}

func (a *Attempts) end(ctx context.Context, operation, token string, o provider.ActivityOutcome) error {
	t, err := a.open(ctx, token)
	if err != nil {
		return err
	}
	return a.hub.Call(ctx, operation, t.InstanceID, "", func(ctx context.Context) error {
		return a.publicError(t.end(ctx, &o))
	})
}

// Heartbeat records a heartbeat of the attempt of a token, and returns whether the activity is cancelled.
func (a *Attempts) Heartbeat(ctx context.Context, token string, details any) (cancel provider.CancelInfo, err error) {
	doc, err := EncodeDetails(details)
	if err != nil {
		return cancel, err
	}
	t, err := a.open(ctx, token)
	if err != nil {
		return cancel, err
	}
	return t.heartbeat(ctx, doc)
}

// EncodeDetails encodes the details of a heartbeat. It returns nil for a heartbeat without details.
func EncodeDetails(details any) (json.RawMessage, error) {
	if details == nil {
		return nil, nil
	}
	payload, err := hub.Encode("details", details, perdure.MaxPayloadBytes)
	if err != nil {
		return nil, err
	}
	doc, _ := payload.Document()
	if string(doc) == "null" {
		return nil, nil
	}
	return doc, nil
}

// failureFor returns the failure of an activity that returns err. It returns nil if err does not end an attempt.
func failureFor(ctx context.Context, err error) *history.Failure {
	if err == nil {
		return nil
	}
	const name = "fail"
	r := perdure.NewRegistry()
	perdure.AddActivity(r, name, func(context.Context, *struct{}) (*struct{}, error) { return nil, err })
	a, _ := (*registry.Registry)(r).Activity(name)
	_, f := a.Run(ctx, json.RawMessage("null"))
	if f != nil && f.Type == registry.TypePending {
		return nil
	}
	return f
}
