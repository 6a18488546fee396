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

// longestToEnd is what a message takes at most in any weather.
const longestToEnd = 30 * time.Minute

// holderStays is how long a holder goes on: longer than anything takes that it holds, and not as long as a seed may take.
const holderStays = 20 * time.Hour

// hold completes the activity that hands-over waits for, with the token of whichever attempt is the current one, at moments that the seed
// chooses: insistently, with heartbeats in between, as who is not sure whether a call came through. Of what is tried again it lets, in every other
// seed, the first attempt run out of time.
func (m *meddler) hold(ctx context.Context, again bool) {
	attempt, silentUpTo := 1, 0
	if again {
		silentUpTo = m.rng.IntN(2)
	}
	m.stays = holderStays
	for m.patience(ctx) && !m.over(ctx) {
		m.moment(ctx)
		err := m.insist(ctx, func(ctx context.Context) error {
			return m.useToken(ctx, attempt, attempt > silentUpTo && m.rng.IntN(3) > 0)
		})
		problem, ok := errors.AsType[*client.TokenError](err)
		switch {
		case err == nil || weatherOf(err):
		case !ok:
			m.wrong("token", err)
		case problem.Reason == client.TokenSuperseded && problem.CurrentAttempt > attempt:
			attempt = problem.CurrentAttempt
		case problem.Reason != client.TokenActivityEnded && problem.Reason != client.TokenExecutionEnded:
			m.wrong("token", err)
		}
	}
}

// useToken completes an attempt, or sends a heartbeat of it.
func (m *meddler) useToken(ctx context.Context, attempt int, completes bool) error {
	w := provider.WorkItem{InstanceID: m.first.InstanceID, ExecutionID: m.first.ExecutionID, Segment: 1, ActivityID: 3, Attempt: attempt, Queue: "default"}
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

// checkHeld wants the answer, or, of the activity that is tried but once, the end of its twelve hours: not before they are over, and not where it
// was completed in time.
func (m *meddler) checkHeld(ctx context.Context, s scenario) error {
	err := m.h.endedAs(ctx, m.first.InstanceID, s)
	if err == nil || s.input == true {
		return err
	}
	end, unread := m.h.Provider.ReadTerminalEvent(ctx, m.first.ExecutionID)
	limit := m.first.CreatedAt.Add(handedFor)
	switch {
	case unread != nil || end.Kind != history.OrchestrationFailed || end.Error == nil || end.Error.Cause == nil || end.Error.Cause.Type != history.TypeTimeout:
		return errors.Join(err, unread)
	case end.Time.Before(limit):
		return fmt.Errorf("out of time %v before that: %w", limit.Sub(end.Time), err)
	case !m.completed.IsZero() && m.completed.Before(limit.Add(-longestToEnd)):
		return fmt.Errorf("completed %v before its time was over: %w", limit.Sub(m.completed), err)
	}
	return nil
}
