package perduretest

import (
	"context"
	"encoding/json"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/activityctx"
)

// ContextWithActivityInfo returns a context for a test that calls an activity as a plain function.
// perdure.ActivityInfoFrom returns info for this context.
func ContextWithActivityInfo(ctx context.Context, info perdure.ActivityInfo) context.Context {
	return activityctx.WithInfo(ctx, (*activityctx.Info)(&info))
}

// HeartbeatRecorder receives the heartbeats of an activity and provides the details of its previous attempt. Its
// methods must be safe for concurrent use.
type HeartbeatRecorder interface {
	// Record receives a heartbeat with its details as JSON, or nil for a heartbeat without details. err is not nil if
	// the details could not be encoded.
	Record(details json.RawMessage, err error)
	// LastDetails returns the details of the previous attempt as JSON, or nil if the attempt stored no details.
	LastDetails() json.RawMessage
}

// ContextWithHeartbeatRecorder returns a context for a test that calls an activity as a plain function.
// perdure.Heartbeat and perdure.HeartbeatDetails use h with this context.
func ContextWithHeartbeatRecorder(ctx context.Context, h HeartbeatRecorder) context.Context {
	return activityctx.WithHeartbeats(ctx, h)
}
