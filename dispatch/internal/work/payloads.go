package work

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

// aboutTask is what is known of a payload of a task.
func aboutTask(t *task, kind perdure.PayloadKind) perdure.PayloadInfo {
	return perdure.PayloadInfo{InstanceID: t.item.InstanceID, ExecutionID: t.item.ExecutionID, Kind: kind, Name: t.item.Name}
}

// vaultOf is what the payloads of a task's worker are sealed by.
func vaultOf(t *task) *vault.Vault { return t.batch.worker.vault }

// openInput returns the input of a task. One that this build has no codec for is another's to read; one that nobody can read any more is the failure of
// the activity.
func (a *admission) openInput(ctx context.Context, t *task) (input json.RawMessage, hindered *result) {
	input, inline := t.item.Input.Document()
	if inline {
		return input, nil
	}
	input, err := vaultOf(t).Open(ctx, aboutTask(t, perdure.PayloadActivityInput), t.item.Input)
	if err == nil {
		return input, nil
	}
	if vault.IsFinal(err) && !vault.IsOfThisBuild(err) {
		t.log().ErrorContext(ctx, "activity input unreadable, failing the activity",
			"event", logevent.ActivityInputUnreadable, "error", err)
		return nil, &result{outcome: &provider.ActivityOutcome{ActivityID: t.item.ActivityID, Attempt: t.item.Attempt, Error: &history.Failure{
			Type: history.TypePayloadUnreadable, Message: err.Error(), NonRetryable: true,
		}}}
	}
	t.log().ErrorContext(ctx, "activity input read failed, releasing the work item",
		"event", logevent.ActivityInputReadFailed, "error", err)
	return nil, &result{back: true}
}

// sealOutcome makes the result of an activity, or the details of its error, what is sent of them. Where that fails for good the activity has failed; else
// its work item goes back: its code runs again, as where an outcome was not accepted. What runs at most once is known here alone, so that is tried again
// until its worker has to stop.
func sealOutcome(ctx context.Context, t *task, o *provider.ActivityOutcome, value json.RawMessage) (ok bool) {
	v := vaultOf(t)
	if v == nil {
		if o.Error == nil {
			o.Result = history.NewInlinePayload(value)
		}
		return true
	}
	err := sealOnce(ctx, t, o, value)
	if err != nil && !vault.IsFinal(err) && t.item.AtMostOnce {
		t.log().WarnContext(ctx, "encoding an at-most-once result failed, retrying until the worker stops",
			"event", logevent.ActivityResultEncodeRetried, "error", err)
		for err != nil && !vault.IsFinal(err) && ctx.Err() == nil {
			clock := t.batch.worker.options.Clock
			_ = intake.WaitUntil(ctx, clock, clock().Add(sealAgainAfter)) // the last try is when its context ends
			err = sealOnce(ctx, t, o, value)
		}
	}
	switch {
	case err == nil:
		return true
	case vault.IsFinal(err):
		o.Error = &history.Failure{Type: history.TypePayloadUnreadable, Message: err.Error(), NonRetryable: true}
		return true
	case t.item.AtMostOnce: // and not run again
		return false
	default:
		t.log().ErrorContext(ctx, "encoding the activity result failed, the activity will run again",
			"event", logevent.ActivityResultEncodeFailed, "error", err)
		return false
	}
}

// sealAgainAfter is how long a result waits that could not be sealed.
const sealAgainAfter = 2 * time.Second

// sealOnce is one try to seal an outcome.
func sealOnce(ctx context.Context, t *task, o *provider.ActivityOutcome, value json.RawMessage) (err error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), recordLimit) // the activity's may have ended
	defer stop()
	if o.Error == nil {
		o.Result, err = vaultOf(t).Seal(ctx, aboutTask(t, perdure.PayloadActivityResult), value)
		return err
	}
	return vaultOf(t).SealFailure(ctx, aboutTask(t, perdure.PayloadErrorDetails), o.Error)
}

// sealDetails makes the details of a heartbeat what is stored of them.
func sealDetails(ctx context.Context, t *task, details json.RawMessage) (json.RawMessage, error) {
	if len(details) == 0 {
		return details, nil
	}
	sealed, err := vaultOf(t).Seal(ctx, aboutTask(t, perdure.PayloadHeartbeatDetails), details)
	return json.RawMessage(sealed), err
}

// openDetails returns the details that an earlier attempt has left; none where they cannot be read.
func openDetails(ctx context.Context, t *task, stored json.RawMessage) (details json.RawMessage, err error) {
	p := history.Payload(stored)
	if doc, plain := p.Document(); plain {
		return doc, nil
	}
	if !p.IsEncoded() { // a release that escaped nothing has left it
		return stored, nil
	}
	details, err = vaultOf(t).Open(ctx, aboutTask(t, perdure.PayloadHeartbeatDetails), p)
	if vault.IsFinal(err) {
		t.log().WarnContext(ctx, "heartbeat details unreadable, starting without them",
			"event", logevent.HeartbeatUnreadable, "error", err)
		return nil, nil
	}
	return details, err
}
