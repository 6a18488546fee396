package perdure

import (
	"context"
	"errors"

	"github.com/perdure/perdure/internal/activityctx"
	"github.com/perdure/perdure/internal/payloadjson"
)

// ActivityInfo describes the activity that is running.
type ActivityInfo struct {
	InstanceID, ExecutionID string
	// ActivityID is the ID of the event that scheduled the activity. ExecutionID and ActivityID together are an
	// idempotency key. They are the same in every attempt and delivery.
	ActivityID int64
	Name       string
	// Attempt is the number of the attempt under the retry policy, from 1. DeliveryCount is the number of deliveries of
	// this attempt's message, from 1.
	Attempt, DeliveryCount int
	Queue                  string
	// CompletionToken is the completion token of this attempt. If the activity's function returns ErrPending, the token
	// holder completes or fails the attempt, or sends heartbeats for it. The token holder uses package client, the HTTP
	// API or the CLI. See Client.CompleteActivity, Client.FailActivity and Client.HeartbeatActivity. The token is the
	// same in every delivery of the attempt, differs between attempts, and becomes invalid when the attempt ends. The
	// token is a secret. Do not log it. Interceptors do not receive it.
	CompletionToken string
}

// ActivityInfoFrom returns the info of the activity that runs with ctx. Outside a worker it returns the zero value, so
// that you can test activities as plain functions. In a test, set the info with perduretest.ContextWithActivityInfo.
func ActivityInfoFrom(ctx context.Context) ActivityInfo {
	return ActivityInfo(activityctx.InfoWithToken(ctx))
}

// ErrPending is returned by an activity that uses asynchronous completion. The activity has passed its completion token
// (ActivityInfo.CompletionToken) to a person or a service that completes the activity later. An error that wraps
// ErrPending has the same effect. The start-to-close, heartbeat and schedule-to-close timeouts and the retry policy
// still apply. A retry runs the function again with another token. Without a timeout the attempt waits forever.
//
// The token is valid before the function has returned. Send the token to its holder in the last step of the function.
// If the process then dies before the function returns, the function runs again with the same token. See
// docs/guides/asynchronous-completion.md.
var ErrPending = errors.New("perdure: result pending; waiting for asynchronous completion")

// Heartbeat reports that an activity is alive and stores details of its progress. An activity with WithHeartbeatTimeout
// must call Heartbeat. If the attempt does not finish, the next attempt reads the details with HeartbeatDetails.
// Heartbeat can be called at any rate and from any goroutine of the activity. Outside a worker it does nothing, so that
// you can test activities as plain functions.
//
// The worker stores details as JSON, at most once a second, at one DynamoDB write unit per KB. Keep details small, for
// example the position to continue from. The worker also stores the latest details when it stops the attempt, or when
// the attempt fails and is retried. A worker that dies loses the details since the last write.
//
// If details is nil, cannot be encoded or is larger than MaxPayloadBytes, the stored details do not change. The worker
// logs an encoding or size problem. The call counts as a heartbeat in all cases.
func Heartbeat(ctx context.Context, details any) {
	h, ok := activityctx.HeartbeatsFrom(ctx)
	if !ok {
		return
	}
	doc, err := adapter.Encode(payloadjson.HeartbeatDetails(activityctx.InfoFrom(ctx).Name), details, MaxPayloadBytes)
	if string(doc) == "null" {
		doc = nil
	}
	h.Record(doc, err)
}

// HeartbeatDetails returns the last details that an earlier attempt or delivery of the activity stored. Heartbeats of
// the current attempt do not change the result. ok is false outside a worker, if there are no details, or if the
// details cannot be decoded into a T.
//
// The earlier attempt may have done more work after it stored the details, so the current attempt can repeat that work.
func HeartbeatDetails[T any](ctx context.Context) (details T, ok bool) {
	h, there := activityctx.HeartbeatsFrom(ctx)
	if !there {
		return details, false
	}
	doc := h.LastDetails()
	if len(doc) == 0 {
		return details, false
	}
	var read T
	if payloadjson.Decode(payloadjson.HeartbeatDetails(activityctx.InfoFrom(ctx).Name), doc, &read) != nil {
		return details, false
	}
	return read, true
}
