package client

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/clientcall"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/internal/standings"
	"github.com/perdure/perdure/provider"
)

// CompleteActivity completes an activity with a result, using the completion token of its current attempt
// (perdure.ActivityInfo.CompletionToken). It may be called before the activity's function returns perdure.ErrPending. The result
// is encoded as JSON; a json.RawMessage is used as is. It must have the form of the activity's result type. Otherwise
// the call fails in the orchestration that decodes it.
//
// CompleteActivity returns nil when the result is on its way. If two results of an attempt are sent, the first one to arrive
// counts. A timeout that expired earlier takes precedence. The result of a cancelled activity is recorded, but the
// orchestration sees it only with perdure.WaitForCancellation.
//
// CompleteActivity returns a *TokenError if the token is not valid for an open attempt. You can repeat a call that failed with
// a retryable error. If the failed call has succeeded after all, the repetition returns a *TokenError with TokenActivityEnded.
func (c *Client) CompleteActivity(ctx context.Context, token string, result any) error {
	doc, err := encodePayload("result", result, c.vault.Limit())
	if err == nil {
		err = c.endAttempt(ctx, clientcall.Complete, token, provider.ActivityOutcome{Result: doc})
	}
	if err != nil {
		return fmt.Errorf("client: complete: %w", err)
	}
	return nil
}

// FailActivity fails an attempt of an activity with err, using the attempt's completion token, as if the activity's
// function had returned err. The activity's retry policy decides whether another attempt follows, which has a new
// token.
//
// FailActivity returns the errors of CompleteActivity. It returns a *provider.FieldError if err is nil or
// perdure.ErrPending, and if the error's details (perdure.WithErrorDetails) cannot be encoded.
func (c *Client) FailActivity(ctx context.Context, token string, err error) error {
	failure := failureFor(ctx, err)
	if failure == nil {
		return fmt.Errorf("client: fail: %w", &provider.FieldError{
			Field: "error", Problem: "must not be nil or ErrPending",
		})
	}
	if failure.DetailsOmitted != "" {
		return fmt.Errorf("client: fail: %w", &provider.FieldError{
			Field: "error.details", Problem: "cannot be encoded: " + failure.DetailsOmitted,
		})
	}
	if err := c.endAttempt(ctx, clientcall.Fail, token, provider.ActivityOutcome{Error: failure}); err != nil {
		return fmt.Errorf("client: fail: %w", err)
	}
	return nil
}

// beatEvery is how often a heartbeat without details is written, unless the heartbeat timeout is short.
const beatEvery = time.Second

// HeartbeatActivity reports that an attempt is alive, using its completion token, and restarts the attempt's heartbeat
// timeout. Use it where the activity's function has returned and cannot call perdure.Heartbeat. Details are stored for
// the next attempt (perdure.HeartbeatDetails); nil keeps the stored details.
//
// HeartbeatActivity returns whether the activity is cancelled. The caller should then stop and complete or fail the
// attempt. An error means that the heartbeat has no effect. HeartbeatActivity returns the errors of CompleteActivity.
//
// A heartbeat costs three reads and one write. One per second is enough: heartbeats without details are written at most
// that often. The first call of a Client for an execution also reads its history from the activity on.
func (c *Client) HeartbeatActivity(ctx context.Context, token string, details any) (provider.CancelInfo, error) {
	cancel, err := c.heartbeat(ctx, token, details)
	if err != nil {
		return cancel, fmt.Errorf("client: heartbeat: %w", err)
	}
	return cancel, nil
}

func (c *Client) heartbeat(ctx context.Context, token string, details any) (cancel provider.CancelInfo, err error) {
	doc, err := encodeDetails(details)
	if err != nil {
		return cancel, err
	}
	h, err := c.open(ctx, token)
	if err != nil {
		return cancel, err
	}
	cancelled, err := h.look(ctx)
	if cancelled { // the cancel record has the reason, also of an activity that is over
		var unread error
		if cancel, unread = h.readCancel(ctx); unread != nil {
			return cancel, unread
		}
	}
	if err != nil {
		return cancel, err
	}
	return cancel, c.beat(ctx, h, cancel.Requested, doc)
}

// encodeDetails encodes the details of a heartbeat; none are nil.
func encodeDetails(details any) (json.RawMessage, error) {
	if details == nil {
		return nil, nil
	}
	payload, err := encodePayload("details", details, MaxInputBytes)
	if err != nil {
		return nil, err
	}
	doc, _ := payload.Document()
	if string(doc) == "null" {
		return nil, nil
	}
	return doc, nil
}

// sealDetails is the details of a heartbeat as they are stored.
func (c *Client) sealDetails(ctx context.Context, h *held, doc json.RawMessage) (json.RawMessage, error) {
	sealed, err := c.vault.SealPayload(ctx, h.about(perdure.PayloadHeartbeatDetails), history.NewInlinePayload(doc))
	return json.RawMessage(sealed), err
}

// beat writes a heartbeat of an attempt, unless that is over.
func (c *Client) beat(ctx context.Context, h *held, cancelled bool, doc json.RawMessage) error {
	record, err := c.hub.ReadActivityRecord(ctx, h.ExecutionID, h.ActivityID)
	if err != nil {
		return err
	}
	now := c.now().UTC()
	if h.isOver(&record) {
		return h.problem(TokenActivityEnded)
	}
	if known := !cancelled || !record.SeenAt.IsZero(); known && len(doc) == 0 && h.hasJustBeaten(&record, now) {
		return nil
	}
	if record.HeartbeatAttempt == h.Attempt && record.LastHeartbeatAt.After(now) { // by another's clock
		now = record.LastHeartbeatAt.Add(time.Millisecond)
	}

	if doc, err = c.sealDetails(ctx, h, doc); err != nil {
		return err
	}
	counted, err := c.hub.HeartbeatPending(ctx, h.ExecutionID, provider.PendingHeartbeat{
		ActivityID: h.ActivityID, Attempt: h.Attempt, At: now, Details: doc, Cancelled: cancelled,
	})
	if err != nil || counted {
		return err
	}
	record, err = c.hub.ReadActivityRecord(ctx, h.ExecutionID, h.ActivityID)
	if err == nil && (h.isOver(&record) || record.HeartbeatAttempt > h.Attempt) {
		err = h.problem(TokenActivityEnded)
	} // else a later one counts, by another's clock
	return err
}

// hasJustBeaten reports whether a heartbeat of the attempt is so new that another without details need not be written.
func (h *held) hasJustBeaten(r *provider.ActivityRecord, now time.Time) bool {
	every := beatEvery
	if p := r.Pending; p != nil && p.HeartbeatMs > 0 {
		every = min(every, time.Duration(p.HeartbeatMs)*time.Millisecond/4) //nolint:mnd // a fraction of the timeout
	}
	since := now.Sub(r.LastHeartbeatAt)
	return r.HeartbeatAttempt == h.Attempt && since >= 0 && since < every
}

// isOver reports whether the attempt is known to be over by what its activity's record says. The holder's clock does not count: it may be wrong by
// more than the time that is left.
func (h *held) isOver(r *provider.ActivityRecord) bool { return r.TimedOutAttempt >= h.Attempt }

// held is an attempt whose token somebody holds.
type held struct {
	provider.WorkItem

	hub       Backend
	standings *standings.Standings
	retry     provider.ActivityRetry
}

// open reads a token, and checks that its attempt is the current one.
func (c *Client) open(ctx context.Context, token string) (*held, error) {
	w, err := c.hub.VerifyCompletionToken(ctx, token)
	if err != nil {
		return nil, tokenError(err)
	}
	h := &held{WorkItem: w, hub: c.hub, standings: c.standings}
	if h.retry, err = c.hub.ReadRetry(ctx, h.ExecutionID, h.ActivityID); err != nil {
		return nil, err
	}
	if h.retry.Attempt > h.Attempt {
		return nil, h.problem(TokenSuperseded)
	}
	return h, nil
}

// about is what is known of a payload of the attempt.
func (h *held) about(kind perdure.PayloadKind) perdure.PayloadInfo {
	return perdure.PayloadInfo{InstanceID: h.InstanceID, ExecutionID: h.ExecutionID, Kind: kind, Name: h.Name}
}

func (h *held) problem(p TokenErrorReason) *TokenError {
	e := &TokenError{Reason: p, InstanceID: h.InstanceID, ExecutionID: h.ExecutionID, ActivityID: h.ActivityID, Attempt: h.Attempt}
	if p == TokenSuperseded {
		e.CurrentAttempt = h.retry.Attempt
	}
	return e
}

// readCancel reads whether the activity is cancelled. One that is since its execution has ended is gone.
func (h *held) readCancel(ctx context.Context) (provider.CancelInfo, error) {
	cancels, _, err := h.hub.ReadCancels(ctx, h.ExecutionID, h.Segment)
	if err != nil {
		return provider.CancelInfo{}, err
	}
	cancel := cancels.Of(h.ActivityID)
	if cancel.Deleted || cancel.ExecutionEnded {
		return provider.CancelInfo{}, h.problem(TokenExecutionEnded)
	}
	return cancel, nil
}

// look reads whether the activity is open, strongly consistent, and whether its cancel is decided. That is for the answer: the turn decides. What was
// read of the execution before is not read again: of ten thousand that are completed each would read what became of all others.
func (h *held) look(ctx context.Context) (cancelled bool, err error) {
	standing := h.standings.Of(h.ExecutionID)
	if err := standing.Look(ctx, h.hub, h.Segment); err != nil {
		return false, err
	}
	known := standing.Of(h.ActivityID, h.Segment)
	switch {
	case known.Over || known.Deleted:
		return false, h.problem(TokenExecutionEnded)
	case known.Settled:
		return known.Cancelled, h.problem(TokenActivityEnded)
	default:
		return known.Cancelled, nil
	}
}

// endAttempt sends what the worker of an attempt would have sent.
func (c *Client) endAttempt(ctx context.Context, operation, token string, o provider.ActivityOutcome) error {
	h, err := c.open(ctx, token)
	if err != nil {
		return err
	}
	return c.call(ctx, operation, h.InstanceID, "", func(ctx context.Context) error {
		if _, err := h.look(ctx); err != nil {
			return err
		}
		record, err := c.hub.ReadActivityRecord(ctx, h.ExecutionID, h.ActivityID)
		if err != nil {
			return err
		}
		if h.isOver(&record) { // that is being made history
			return h.problem(TokenActivityEnded)
		}
		if err := h.complete(ctx, c.now().UTC(), &o); err != nil {
			return err
		}
		if o.Result, err = c.vault.SealPayload(ctx, h.about(perdure.PayloadActivityResult), o.Result); err != nil {
			return err
		}
		if err := c.vault.SealFailure(ctx, h.about(perdure.PayloadErrorDetails), o.Error); err != nil {
			return err
		}
		m := provider.Message{
			Kind: provider.MessageActivityOutcomes, InstanceID: h.InstanceID, ExecutionID: h.ExecutionID, Segment: h.Segment,
			Outcomes: []provider.ActivityOutcome{o}, TraceParent: traceParentOf(ctx),
		}
		if o.Run != "" {
			m.Kind = provider.MessageActivityAttempts
		}
		if err := c.hub.EnqueueForOrchestrator(ctx, m); err != nil {
			return err
		}
		h.endBeats(ctx, &record)
		return nil
	})
}

// complete adds to an outcome what the worker of the attempt would have.
func (h *held) complete(ctx context.Context, now time.Time, o *provider.ActivityOutcome) error {
	o.ActivityID, o.Attempt = h.ActivityID, h.Attempt
	w, err := h.hub.ReadWorkItem(ctx, h.InstanceID, h.ExecutionID, h.Segment, h.ActivityID)
	if errors.Is(err, provider.ErrNotFound) {
		return h.problem(TokenExecutionEnded)
	}
	if err != nil {
		return err
	}
	if w.WaitForCancellation {
		cancel, err := h.readCancel(ctx)
		if err != nil {
			return err
		}
		if cancel.Requested {
			o.Ended, o.SeenAt = history.OutcomeReturned, &now
		}
		if h.retry.Ended != "" { // an earlier attempt was given up, and its code may still run
			o.Ended = h.retry.Ended
		}
	}
	if o.Error == nil || w.Retry == nil {
		return nil
	}

	o.Segment, o.Run = h.Segment, runOf(o)
	delay, again := replay.NextRetry(w.Retry, h.ExecutionID, h.ActivityID, h.Attempt, o.Error)
	at := now.Add(delay + time.Millisecond - 1).Truncate(time.Millisecond)
	if again && (w.ScheduleToCloseDeadline == nil || at.Before(*w.ScheduleToCloseDeadline)) {
		o.RetryAt, o.RetryInMs = &at, max(at.Sub(now).Milliseconds(), 1)
	}
	return nil
}

// runOf names a failure, so that one that is sent twice is one.
func runOf(o *provider.ActivityOutcome) string {
	doc, err := json.Marshal(o.Error)
	if err != nil {
		doc = nil // a failure is plain data
	}
	return fmt.Sprintf("token.%d.%x", o.Attempt, sha256.Sum256(doc))
}

// endBeats has heartbeats of the attempt answered that it is over, at best, where any have come: its outcome is on its way.
func (h *held) endBeats(ctx context.Context, record *provider.ActivityRecord) {
	if record.HeartbeatAttempt == h.Attempt {
		_, _ = h.hub.TimeOutPending(ctx, h.ExecutionID, h.ActivityID, h.Attempt, record.LastHeartbeatAt)
	}
}

// failureFor is an error as it travels: as that of an activity which returns it. It is nil for what does not end an attempt.
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
