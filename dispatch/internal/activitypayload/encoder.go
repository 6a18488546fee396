// Package activitypayload encodes and decodes the payloads of activities in a worker (R28).
package activitypayload

import (
	"context"
	"encoding/json"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/payloads"
	"github.com/perdure/perdure/provider"
)

// Encoder encodes and decodes payloads of activities.
type Encoder struct {
	encoding *payloads.Encoding // nil if payloads are not encoded or stored
	clock    func() time.Time
}

// New returns an Encoder with the codecs of a program and the payload store of a hub, if there is one. The caller has
// checked the codecs.
func New(codecs []perdure.Codec, p provider.Provider, clock func() time.Time) *Encoder {
	v, _ := payloads.New(codecs, payloads.StoreOf(p))
	return &Encoder{v, clock}
}

// retryDelay is the delay after which an AtMostOnce result is encoded again.
const retryDelay = 2 * time.Second

// HasStore reports whether there is a payload store.
func (e *Encoder) HasStore() bool { return e.encoding.HasStore() }

// info describes a payload of an activity.
func info(it *provider.LockedWorkItem, kind perdure.PayloadKind) perdure.PayloadInfo {
	return perdure.PayloadInfo{InstanceID: it.InstanceID, ExecutionID: it.ExecutionID, Kind: kind, Name: it.Name}
}

// DecodeInput returns the input of an activity. If the input is unreadable for every build, it returns the failure of
// the activity. An error means that the work item must be released: another build or a later delivery may be able to
// read the input.
func (e *Encoder) DecodeInput(
	ctx context.Context, t intake.Task,
) (input json.RawMessage, f *history.Failure, err error) {
	it := t.WorkItem()
	input, inline := it.Input.Document()
	if inline {
		return input, nil, nil
	}
	input, err = e.encoding.Decode(ctx, info(it, perdure.PayloadActivityInput), it.Input)
	if err == nil {
		return input, nil, nil
	}
	if payloads.IsPermanent(err) && !payloads.IsOfBuild(err) {
		t.Log().ErrorContext(ctx, "activity input unreadable, failing the activity",
			"event", logevent.ActivityInputUnreadable, "error", err)
		return nil, unreadable(err), nil
	}
	t.Log().ErrorContext(ctx, "activity input read failed, releasing the work item",
		"event", logevent.ActivityInputReadFailed, "error", err)
	return nil, nil, err
}

// unreadable returns the failure of an activity with a payload that can never be decoded or encoded.
func unreadable(err error) *history.Failure {
	return &history.Failure{Type: history.TypePayloadUnreadable, Message: err.Error(), NonRetryable: true}
}

// EncodeOutcome encodes the result of an activity, or the details of its error, into o. A permanent error fails the
// activity. After another error, ok is false: the work item must be released, and the code runs again. An AtMostOnce
// attempt does not run again, so its result is encoded again until the worker stops.
func (e *Encoder) EncodeOutcome(
	ctx context.Context, t intake.Task, o *provider.ActivityOutcome, value json.RawMessage,
) (ok bool) {
	if e.encoding == nil {
		if o.Error == nil {
			o.Result = history.NewInlinePayload(value)
		}
		return true
	}
	it := t.WorkItem()
	err := e.encode(ctx, it, o, value)
	if err != nil && !payloads.IsPermanent(err) && it.AtMostOnce {
		t.Log().WarnContext(ctx, "encoding an at-most-once result failed, retrying until the worker stops",
			"event", logevent.ActivityResultEncodeRetried, "error", err)
		for err != nil && !payloads.IsPermanent(err) && ctx.Err() == nil {
			// If the activity's context ends during the wait, the encoding is tried a last time.
			_ = intake.WaitUntil(ctx, e.clock, e.clock().Add(retryDelay))
			err = e.encode(ctx, it, o, value)
		}
	}
	switch {
	case err == nil:
		return true
	case payloads.IsPermanent(err):
		o.Error = unreadable(err)
		return true
	case it.AtMostOnce:
		return false
	default:
		t.Log().ErrorContext(ctx, "encoding the activity result failed, the activity will run again",
			"event", logevent.ActivityResultEncodeFailed, "error", err)
		return false
	}
}

// encode encodes an outcome, even if the activity's context has ended.
func (e *Encoder) encode(
	ctx context.Context, it *provider.LockedWorkItem, o *provider.ActivityOutcome, value json.RawMessage,
) (err error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), intake.WriteTimeout)
	defer stop()
	if o.Error == nil {
		o.Result, err = e.encoding.Encode(ctx, info(it, perdure.PayloadActivityResult), value)
		return err
	}
	return e.encoding.EncodeFailure(ctx, info(it, perdure.PayloadErrorDetails), o.Error)
}

// EncodeDetails encodes heartbeat details.
func (e *Encoder) EncodeDetails(ctx context.Context, t intake.Task, details json.RawMessage) (json.RawMessage, error) {
	if len(details) == 0 {
		return details, nil
	}
	encoded, err := e.encoding.Encode(ctx, info(t.WorkItem(), perdure.PayloadHeartbeatDetails), details)
	return json.RawMessage(encoded), err
}

// DecodeDetails returns the heartbeat details of an earlier attempt, or nil if they are unreadable.
func (e *Encoder) DecodeDetails(
	ctx context.Context, t intake.Task, stored json.RawMessage,
) (details json.RawMessage, err error) {
	payload := history.Payload(stored)
	if doc, inline := payload.Document(); inline {
		return doc, nil
	}
	if !payload.IsEncoded() { // from a release that did not escape details
		return stored, nil
	}
	details, err = e.encoding.Decode(ctx, info(t.WorkItem(), perdure.PayloadHeartbeatDetails), payload)
	if payloads.IsPermanent(err) {
		t.Log().WarnContext(ctx, "heartbeat details unreadable, starting without them",
			"event", logevent.HeartbeatUnreadable, "error", err)
		return nil, nil
	}
	return details, err
}
