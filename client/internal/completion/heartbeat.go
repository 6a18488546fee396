package completion

import (
	"context"
	"encoding/json"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// heartbeatInterval is the minimum time between two stored heartbeats without details, unless the heartbeat timeout is
// short.
const heartbeatInterval = time.Second

// heartbeat records a heartbeat with its details, if any, and reports whether the activity is cancelled.
func (t *attempt) heartbeat(ctx context.Context, details json.RawMessage) (cancel provider.CancelInfo, err error) {
	cancelled, err := t.checkOpen(ctx)
	if cancelled { // the cancel record has the reason, even if the activity has ended
		var failed error
		if cancel, failed = t.readCancel(ctx); failed != nil {
			return cancel, failed
		}
	}
	if err != nil {
		return cancel, err
	}
	return cancel, t.recordHeartbeat(ctx, cancel.Requested, details)
}

// recordHeartbeat stores a heartbeat unless the attempt has ended or the last heartbeat is recent.
func (t *attempt) recordHeartbeat(ctx context.Context, cancelled bool, details json.RawMessage) error {
	record, err := t.hub.ReadActivityRecord(ctx, t.ExecutionID, t.ActivityID)
	if err != nil {
		return err
	}
	now := t.hub.Now().UTC()
	if t.hasEnded(&record) {
		return t.rejected(ActivityEnded)
	}
	cancelRecorded := !cancelled || !record.SeenAt.IsZero()
	if cancelRecorded && len(details) == 0 && t.isRecent(&record, now) {
		return nil
	}
	if record.HeartbeatAttempt == t.Attempt && record.LastHeartbeatAt.After(now) { // another process has a fast clock
		now = record.LastHeartbeatAt.Add(time.Millisecond)
	}

	about := t.payload(perdure.PayloadHeartbeatDetails)
	encoded, err := t.hub.Encoding.EncodePayload(ctx, about, history.NewInlinePayload(details))
	if err != nil {
		return err
	}
	counted, err := t.hub.HeartbeatPending(ctx, t.ExecutionID, provider.PendingHeartbeat{
		ActivityID: t.ActivityID, Attempt: t.Attempt, At: now, Details: json.RawMessage(encoded), Cancelled: cancelled,
	})
	if err != nil || counted {
		return err
	}
	record, err = t.hub.ReadActivityRecord(ctx, t.ExecutionID, t.ActivityID)
	if err == nil && (t.hasEnded(&record) || record.HeartbeatAttempt > t.Attempt) {
		err = t.rejected(ActivityEnded)
	} // otherwise a process whose clock is ahead has stored a later heartbeat
	return err
}

// isRecent reports whether the last stored heartbeat is so recent that a heartbeat without details is not stored.
func (t *attempt) isRecent(r *provider.ActivityRecord, now time.Time) bool {
	interval := heartbeatInterval
	if p := r.Pending; p != nil && p.HeartbeatMs > 0 {
		timeout := time.Duration(p.HeartbeatMs) * time.Millisecond
		interval = min(interval, timeout/4) //nolint:mnd // a fraction
	}
	since := now.Sub(r.LastHeartbeatAt)
	return r.HeartbeatAttempt == t.Attempt && since >= 0 && since < interval
}
