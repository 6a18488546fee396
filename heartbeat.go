package perdure

import (
	"context"

	"github.com/perdure/perdure/internal/activityctx"
)

// Heartbeat says that an activity is alive, as WithHeartbeatTimeout asks for, and leaves details of how far it is: when this
// attempt does not come to its end, the next one finds them by HeartbeatDetails. It may be called as often as is convenient,
// from any goroutine of the activity. It does nothing outside a worker, so that activities can be tested as plain functions.
//
// Details travel as JSON. The newest are written once a second, a write unit a kilobyte, so they should hold where to go on and
// not what was done. They are also written when the attempt fails and is tried again, or is stopped by its worker; only a
// worker that dies loses those of its last second. Nil details leave those before as they are. So do details that do not
// encode, or take more than MaxPayloadBytes: the worker logs that, and the activity counts as alive.
func Heartbeat(ctx context.Context, details any) {
	h, ok := activityctx.HeartbeatsFrom(ctx)
	if !ok {
		return
	}
	doc, err := encode(payload{heartbeat, activity, activityctx.InfoFrom(ctx).Name}, details)
	if string(doc) == "null" {
		doc = nil
	}
	h.Beat(doc, err)
}

// HeartbeatDetails returns the last details that an earlier attempt or delivery of the activity has left, whatever this one
// has left meanwhile. It returns false when there are none or they do not fit T, and outside a worker.
//
// An activity may have gone on after those details, so what it did since may be done again.
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
	if decode(payload{heartbeat, activity, activityctx.InfoFrom(ctx).Name}, doc, &read) != nil {
		return details, false
	}
	return read, true
}
