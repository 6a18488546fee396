package perdure

import (
	"context"

	"github.com/perdure/perdure/internal/activityctx"
	"github.com/perdure/perdure/internal/payloadjson"
)

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
