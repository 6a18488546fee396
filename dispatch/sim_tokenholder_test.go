package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// maxMessageDelay is the longest delay of a message under all faults.
const maxMessageDelay = 30 * time.Minute

// holderStays is the time for which a token holder stays active. It is longer than its activity, and shorter than a
// seed.
const holderStays = 20 * time.Hour

// hold completes the activity of hands-over with the token of the current attempt, at times that the seed selects. It
// sends heartbeats, and repeats its calls like a caller that received no response. If the activity is retried, the
// first attempt times out in every other seed.
func (m *simClient) hold(ctx context.Context, again bool) {
	attempt, silentUpTo := 1, 0
	if again {
		silentUpTo = m.rng.IntN(2)
	}
	m.stays = holderStays
	for m.isActive(ctx) && !m.over(ctx) {
		m.moment(ctx)
		err := m.repeatCall(ctx, func(ctx context.Context) error {
			return m.useToken(ctx, attempt, attempt > silentUpTo && m.rng.IntN(3) > 0)
		})
		problem, ok := errors.AsType[*client.TokenError](err)
		switch {
		case err == nil || isInjectedFault(err):
		case !ok:
			m.wrong("token", err)
		case problem.Reason == client.TokenSuperseded && problem.CurrentAttempt > attempt:
			attempt = problem.CurrentAttempt
		case problem.Reason != client.TokenActivityEnded && problem.Reason != client.TokenExecutionEnded:
			m.wrong("token", err)
		}
	}
}

// useToken completes an attempt, or sends a heartbeat.
func (m *simClient) useToken(ctx context.Context, attempt int, completes bool) error {
	w := provider.WorkItem{
		InstanceID: m.first.InstanceID, ExecutionID: m.first.ExecutionID, Segment: 1, ActivityID: 3, Attempt: attempt,
		Queue: "default",
	}
	tokens, err := m.h.Provider.CompletionTokens(ctx)
	if err != nil {
		return err
	}
	token := tokens.SignCompletion(&w)
	if !completes {
		_, err := m.c.HeartbeatActivity(ctx, token, nil)
		return err
	}
	if err := m.c.CompleteActivity(ctx, token, "answered"); err != nil {
		return err
	}
	if m.completed.IsZero() {
		m.completed = time.Now()
	}
	return nil
}

// checkCompletion checks that the instance has the result, or, without retries, that the activity timed out after
// twelve hours and was not completed in time.
func (m *simClient) checkCompletion(ctx context.Context, s scenario) error {
	err := m.h.endedAs(ctx, m.first.InstanceID, s)
	if err == nil || s.input == true {
		return err
	}
	end, unread := m.h.Provider.ReadTerminalEvent(ctx, m.first.ExecutionID)
	limit := m.first.CreatedAt.Add(handsOverTimeout)
	switch {
	case unread != nil || end.Kind != history.OrchestrationFailed || end.Error == nil || end.Error.Cause == nil ||
		end.Error.Cause.Type != history.TypeTimeout:
		return errors.Join(err, unread)
	case end.Time.Before(limit):
		return fmt.Errorf("timed out %v too early: %w", limit.Sub(end.Time), err)
	case !m.completed.IsZero() && m.completed.Before(limit.Add(-maxMessageDelay)):
		return fmt.Errorf("timed out although completed %v before the timeout: %w", limit.Sub(m.completed), err)
	}
	return nil
}
