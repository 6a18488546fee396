package perdure

import (
	"context"

	"github.com/perdure/perdure/internal/activityctx"
)

// ActivityInfo describes the activity that is running.
type ActivityInfo struct {
	InstanceID, ExecutionID string
	// ActivityID is the ID of the event that scheduled the activity. ExecutionID and ActivityID together are an
	// idempotency key: they are the same in every attempt and delivery.
	ActivityID int64
	Name       string
	// Attempt is the number of the attempt under the retry policy, from 1. DeliveryCount is how often the message of
	// this attempt has been delivered, from 1.
	Attempt, DeliveryCount int
	Queue                  string
	// CompletionToken is the completion token of this attempt. If the activity's function returns ErrPending, the token
	// holder completes or fails the attempt, or sends heartbeats for it, with Client.CompleteActivity,
	// Client.FailActivity and Client.HeartbeatActivity, the HTTP API or the CLI. The token is the same in every
	// delivery of the attempt, differs between attempts, and becomes invalid when the attempt ends. It is a secret: do
	// not log it. Interceptors do not receive it.
	CompletionToken string
}

// ActivityInfoFrom returns the info of the activity that runs with ctx. Outside a worker it returns the zero value, so
// that you can test activities as plain functions. In a test, set the info with perduretest.ContextWithActivityInfo.
func ActivityInfoFrom(ctx context.Context) ActivityInfo {
	return ActivityInfo(activityctx.InfoWithToken(ctx))
}
