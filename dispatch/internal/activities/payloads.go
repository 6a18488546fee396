package activities

import (
	"context"
	"encoding/json"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/vault"
	"github.com/perdure/perdure/provider"
)

// payloadEncoder encodes and decodes the payloads of activities (R28).
type payloadEncoder struct {
	vault   *vault.Vault // nil if payloads are not encoded or stored
	options *Options
}

// payloadInfo describes a payload of an activity.
func payloadInfo(it *provider.LockedWorkItem, kind perdure.PayloadKind) perdure.PayloadInfo {
	return perdure.PayloadInfo{InstanceID: it.InstanceID, ExecutionID: it.ExecutionID, Kind: kind, Name: it.Name}
}

// decodeInput returns the input of a task. If another build may be able to read it, the task is released. Otherwise an
// unreadable input fails the activity.
func (p *payloadEncoder) decodeInput(ctx context.Context, t *task) (input json.RawMessage, refused *result) {
	it := t.item
	input, inline := it.Input.Document()
	if inline {
		return input, nil
	}
	input, err := p.vault.Open(ctx, payloadInfo(it, perdure.PayloadActivityInput), it.Input)
	if err == nil {
		return input, nil
	}
	if vault.IsFinal(err) && !vault.IsOfThisBuild(err) {
		t.log().ErrorContext(ctx, "activity input unreadable, failing the activity",
			"event", logevent.ActivityInputUnreadable, "error", err)
		return nil, &result{outcome: failedOutcome(it, unreadable(err))}
	}
	t.log().ErrorContext(ctx, "activity input read failed, releasing the work item",
		"event", logevent.ActivityInputReadFailed, "error", err)
	return nil, &released
}

// unreadable returns the failure of an activity whose payload cannot be decoded or encoded.
func unreadable(err error) *failure {
	return &failure{Type: history.TypePayloadUnreadable, Message: err.Error(), NonRetryable: true}
}

// encodeOutcome encodes the result of an activity, or the details of its error, into o. A permanent error fails the
// activity. After another error, the work item is released and the code runs again. An AtMostOnce attempt does not run
// again, so its result is encoded again until the worker stops.
func (p *payloadEncoder) encodeOutcome(
	ctx context.Context, t *task, o *provider.ActivityOutcome, value json.RawMessage,
) (ok bool) {
	if p.vault == nil {
		if o.Error == nil {
			o.Result = history.NewInlinePayload(value)
		}
		return true
	}
	err := p.encodeOnce(ctx, t.item, o, value)
	if err != nil && !vault.IsFinal(err) && t.item.AtMostOnce {
		t.log().WarnContext(ctx, "encoding an at-most-once result failed, retrying until the worker stops",
			"event", logevent.ActivityResultEncodeRetried, "error", err)
		for err != nil && !vault.IsFinal(err) && ctx.Err() == nil {
			// the last try is when the activity's context ends
			_ = intake.WaitUntil(ctx, p.options.Clock, p.options.Clock().Add(encodeRetryDelay))
			err = p.encodeOnce(ctx, t.item, o, value)
		}
	}
	switch {
	case err == nil:
		return true
	case vault.IsFinal(err):
		o.Error = unreadable(err)
		return true
	case t.item.AtMostOnce:
		return false
	default:
		t.log().ErrorContext(ctx, "encoding the activity result failed, the activity will run again",
			"event", logevent.ActivityResultEncodeFailed, "error", err)
		return false
	}
}

// encodeRetryDelay is the delay after which a result is encoded again.
const encodeRetryDelay = 2 * time.Second

// encodeOnce encodes an outcome, even if the activity's context has ended.
func (p *payloadEncoder) encodeOnce(
	ctx context.Context, it *provider.LockedWorkItem, o *provider.ActivityOutcome, value json.RawMessage,
) (err error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer stop()
	if o.Error == nil {
		o.Result, err = p.vault.Seal(ctx, payloadInfo(it, perdure.PayloadActivityResult), value)
		return err
	}
	return p.vault.SealFailure(ctx, payloadInfo(it, perdure.PayloadErrorDetails), o.Error)
}

// encodeDetails encodes heartbeat details.
func (p *payloadEncoder) encodeDetails(
	ctx context.Context, t *task, details json.RawMessage,
) (json.RawMessage, error) {
	if len(details) == 0 {
		return details, nil
	}
	encoded, err := p.vault.Seal(ctx, payloadInfo(t.item, perdure.PayloadHeartbeatDetails), details)
	return json.RawMessage(encoded), err
}

// decodeDetails returns the heartbeat details of an earlier attempt, or nil if they are unreadable.
func (p *payloadEncoder) decodeDetails(
	ctx context.Context, t *task, stored json.RawMessage,
) (details json.RawMessage, err error) {
	payload := history.Payload(stored)
	if doc, inline := payload.Document(); inline {
		return doc, nil
	}
	if !payload.IsEncoded() { // from a release that did not escape details
		return stored, nil
	}
	details, err = p.vault.Open(ctx, payloadInfo(t.item, perdure.PayloadHeartbeatDetails), payload)
	if vault.IsFinal(err) {
		t.log().WarnContext(ctx, "heartbeat details unreadable, starting without them",
			"event", logevent.HeartbeatUnreadable, "error", err)
		return nil, nil
	}
	return details, err
}
