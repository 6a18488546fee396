package perdure

import (
	"context"

	"github.com/perdure/perdure/internal/activityctx"
)

// ActivityInfo says which activity is running, and for whom.
type ActivityInfo struct {
	InstanceID, ExecutionID string
	// ActivityID is the id of the event that scheduled the activity: with ExecutionID, a key that is the same in every
	// attempt and delivery, for services that take an idempotency key.
	ActivityID int64
	Name       string
	// Attempt counts the tries of a retry policy from 1, AttemptCount the deliveries of this attempt's message.
	Attempt, AttemptCount int
	Queue                 string
	// Token is the right to complete this attempt from outside, once its function has returned ErrPending: whoever has it
	// completes the activity, fails it, and keeps it alive, over Client.Complete, Client.Fail and Client.Heartbeat, HTTP
	// or the command. It is the same in every delivery of the attempt, another in each attempt, and ends with the attempt.
	// It is a secret: it belongs in no log. Interceptors are not given it.
	Token string
}

// ActivityInfoFrom returns what runs under an activity's context. It is zero outside a worker, so that activities can be
// tested as plain functions; perduretest.ContextWithActivityInfo sets it in a test.
func ActivityInfoFrom(ctx context.Context) ActivityInfo {
	return ActivityInfo(activityctx.InfoWithToken(ctx))
}
