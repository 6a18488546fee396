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

// ErrPending is returned by an activity that uses asynchronous completion: the activity has passed its completion token
// (ActivityInfo.CompletionToken) to a person or another service, which completes it later. An error that wraps
// ErrPending has the same effect. The start-to-close, heartbeat and schedule-to-close timeouts and the retry policy
// still apply. A retry runs the function again with another token. Without a timeout the attempt waits forever.
//
// The token can be used before the function has returned. Pass it on last: if the process dies after that and before
// the return, the function runs again with the same token. See docs/guides/asynchronous-completion.md.
var ErrPending = errors.New("perdure: result pending; waiting for asynchronous completion")

// Heartbeat reports that an activity is alive, which WithHeartbeatTimeout requires, and stores details of its progress.
// If the attempt does not finish, the next attempt reads the details with HeartbeatDetails. Heartbeat can be called at
// any rate and from any goroutine of the activity. Outside a worker it does nothing, so that you can test activities as
// plain functions.
//
// Details are stored as JSON, at most once a second, at one write unit per KB. Keep them small: store the position to
// continue from. The latest details are also written when the attempt fails and is retried, or is stopped by its
// worker. A worker that dies loses the details of its last second.
//
// If details is nil, the stored details do not change. The same applies to details that cannot be encoded or are larger
// than MaxPayloadBytes: the worker logs the problem, and the call still counts as a heartbeat.
func Heartbeat(ctx context.Context, details any) {
	h, ok := activityctx.HeartbeatsFrom(ctx)
	if !ok {
		return
	}
	doc, err := encodeWithin(payloadjson.HeartbeatDetails(activityctx.InfoFrom(ctx).Name), details, MaxPayloadBytes)
	if string(doc) == "null" {
		doc = nil
	}
	h.Record(doc, err)
}

// HeartbeatDetails returns the last details that an earlier attempt or delivery of the activity stored. Heartbeats of
// the current attempt do not change them. ok is false if there are no details, if they cannot be decoded into a T, and
// outside a worker.
//
// The earlier attempt can have continued after it stored the details, so the work after them can be done twice.
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
