// Package completion completes, fails and extends attempts of activities with their completion tokens.
package completion

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client/internal/hub"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/retry"
	"github.com/perdure/perdure/internal/settlements"
	"github.com/perdure/perdure/provider"
)

// Reason is the reason why a token is rejected.
type Reason string

// Reasons of a TokenError.
const (
	Invalid        Reason = "invalid_token"
	WrongHub       Reason = "other_hub"
	Superseded     Reason = "superseded"
	ActivityEnded  Reason = "activity_over"
	ExecutionEnded Reason = "execution_over"
)

// TokenError reports a token that is rejected. Package client converts it to client.TokenError, which has the same
// fields.
type TokenError struct {
	Reason                  Reason
	Hub                     string
	InstanceID, ExecutionID string
	ActivityID              int64
	Attempt                 int
	CurrentAttempt          int
}

// Error implements error.
func (e *TokenError) Error() string { return "token not accepted: " + string(e.Reason) }

// Attempts ends and extends the attempts of tokens. It caches the IDs of ended activities, so that each completion in a
// large execution reads only new ones. It is safe for concurrent use.
type Attempts struct {
	hub         *hub.Hub
	settlements *settlements.Cache
	publicError func(error) error
}

// NewAttempts returns the attempts of a hub. publicError converts a TokenError for interceptors.
func NewAttempts(h *hub.Hub, publicError func(error) error) *Attempts {
	return &Attempts{hub: h, settlements: settlements.NewCache(), publicError: publicError}
}

// attempt is the current attempt of an activity.
type attempt struct {
	provider.WorkItem

	hub   *hub.Hub
	known *settlements.Cache
	retry provider.ActivityRetry
}

// open reads a token and checks that its attempt is the current one.
func (a *Attempts) open(ctx context.Context, token string) (*attempt, error) {
	w, err := a.hub.VerifyCompletionToken(ctx, token)
	if err != nil {
		return nil, invalid(err)
	}
	t := &attempt{WorkItem: w, hub: a.hub, known: a.settlements}
	if t.retry, err = a.hub.ReadRetry(ctx, t.ExecutionID, t.ActivityID); err != nil {
		return nil, err
	}
	if t.retry.Attempt > t.Attempt {
		return nil, t.rejected(Superseded)
	}
	return t, nil
}

// invalid returns the TokenError for a token that the hub cannot read. It returns other errors unchanged.
func invalid(err error) error {
	if foreign, ok := errors.AsType[*provider.ForeignTokenError](err); ok {
		return &TokenError{Reason: WrongHub, Hub: provider.Excerpt(foreign.Hub)}
	}
	if errors.Is(err, provider.ErrInvalidToken) {
		return &TokenError{Reason: Invalid}
	}
	return err
}

func (t *attempt) rejected(reason Reason) *TokenError {
	e := &TokenError{
		Reason: reason, InstanceID: t.InstanceID, ExecutionID: t.ExecutionID, ActivityID: t.ActivityID,
		Attempt: t.Attempt,
	}
	if reason == Superseded {
		e.CurrentAttempt = t.retry.Attempt
	}
	return e
}

func (t *attempt) payload(kind perdure.PayloadKind) perdure.PayloadInfo {
	return perdure.PayloadInfo{InstanceID: t.InstanceID, ExecutionID: t.ExecutionID, Kind: kind, Name: t.Name}
}

// readCancel reads the cancellation of the activity. It returns a TokenError if the execution has ended.
func (t *attempt) readCancel(ctx context.Context) (provider.CancelInfo, error) {
	cancels, _, err := t.hub.ReadCancels(ctx, t.ExecutionID, t.Segment)
	if err != nil {
		return provider.CancelInfo{}, err
	}
	cancel := cancels.Of(t.ActivityID)
	if cancel.Deleted || cancel.ExecutionEnded {
		return provider.CancelInfo{}, t.rejected(ExecutionEnded)
	}
	return cancel, nil
}

// checkOpen returns a TokenError if the activity has ended, and reports whether the activity is cancelled. The read is
// strongly consistent. The check only returns an early error to the caller, because the turn makes the final decision.
func (t *attempt) checkOpen(ctx context.Context) (cancelled bool, err error) {
	execution := t.known.Execution(t.ExecutionID)
	if err := execution.Read(ctx, t.hub, t.Segment); err != nil {
		return false, err
	}
	activity := execution.Activity(t.ActivityID, t.Segment)
	switch {
	case activity.ExecutionEnded || activity.Deleted:
		return false, t.rejected(ExecutionEnded)
	case activity.Settled:
		return activity.Cancelled, t.rejected(ActivityEnded)
	default:
		return activity.Cancelled, nil
	}
}

// hasEnded reports whether the attempt timed out or sent its outcome, according to the activity's record. It does not
// use the clock of the token holder, because that clock can be wrong.
func (t *attempt) hasEnded(r *provider.ActivityRecord) bool { return r.EndedAttempt >= t.Attempt }

// end sends the outcome of the attempt, as its worker would have done.
func (t *attempt) end(ctx context.Context, o *provider.ActivityOutcome) error {
	if _, err := t.checkOpen(ctx); err != nil {
		return err
	}
	record, err := t.hub.ReadActivityRecord(ctx, t.ExecutionID, t.ActivityID)
	if err != nil {
		return err
	}
	if t.hasEnded(&record) { // which is not in the history yet
		return t.rejected(ActivityEnded)
	}
	if err := t.complete(ctx, t.hub.Now().UTC(), o); err != nil {
		return err
	}
	if o.Result, err = t.hub.Encoding.EncodePayload(ctx, t.payload(perdure.PayloadActivityResult),
		o.Result); err != nil {
		return err
	}
	if err := t.hub.Encoding.EncodeFailure(ctx, t.payload(perdure.PayloadErrorDetails), o.Error); err != nil {
		return err
	}
	m := provider.Message{
		Kind: provider.MessageActivityOutcomes, InstanceID: t.InstanceID, ExecutionID: t.ExecutionID,
		Segment: t.Segment, Outcomes: []provider.ActivityOutcome{*o}, TraceParent: hub.TraceParent(ctx),
	}
	if o.Run != "" {
		m.Kind = provider.MessageActivityAttempts
	}
	if err := t.hub.EnqueueForOrchestrator(ctx, m); err != nil {
		return err
	}
	t.endHeartbeats(ctx, &record)
	return nil
}

// complete sets the fields that the worker of the attempt would have set.
func (t *attempt) complete(ctx context.Context, now time.Time, o *provider.ActivityOutcome) error {
	o.ActivityID, o.Attempt = t.ActivityID, t.Attempt
	w, err := t.hub.ReadWorkItem(ctx, t.InstanceID, t.ExecutionID, t.Segment, t.ActivityID)
	if errors.Is(err, provider.ErrNotFound) {
		return t.rejected(ExecutionEnded)
	}
	if err != nil {
		return err
	}
	if w.WaitForCancellation {
		cancel, err := t.readCancel(ctx)
		if err != nil {
			return err
		}
		if cancel.Requested {
			o.Ended, o.SeenAt = history.OutcomeReturned, &now
		}
		if t.retry.Ended != "" { // an earlier attempt was abandoned, and its code may still run
			o.Ended = t.retry.Ended
		}
	}
	if o.Error == nil || w.Retry == nil {
		return nil
	}

	o.Segment, o.Run = t.Segment, runID(o)
	delay, again := retry.Next(w.Retry, t.ExecutionID, t.ActivityID, t.Attempt, o.Error)
	at := now.Add(delay + time.Millisecond - 1).Truncate(time.Millisecond)
	if again && (w.ScheduleToCloseDeadline == nil || at.Before(*w.ScheduleToCloseDeadline)) {
		o.RetryAt, o.RetryInMs = &at, max(at.Sub(now).Milliseconds(), 1)
	}
	return nil
}

// runID derives an ID from a failure, so that a repeated call reports the same failure.
func runID(o *provider.ActivityOutcome) string {
	doc, err := json.Marshal(o.Error)
	if err != nil {
		doc = nil // cannot happen, because a failure is plain data
	}
	return fmt.Sprintf("token.%d.%x", o.Attempt, sha256.Sum256(doc))
}

// endHeartbeats makes later heartbeats of the attempt fail, because its outcome has been sent. Errors are ignored.
func (t *attempt) endHeartbeats(ctx context.Context, record *provider.ActivityRecord) {
	if record.HeartbeatAttempt == t.Attempt {
		_, _ = t.hub.EndPending(ctx, t.ExecutionID, t.ActivityID, t.Attempt, record.LastHeartbeatAt)
	}
}
