package perduretest

import (
	"context"
	"encoding/json"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/activityctx"
)

// ContextWithActivityInfo makes the context of an activity that is tested as a plain function: perdure.ActivityInfoFrom returns info.
func ContextWithActivityInfo(ctx context.Context, info perdure.ActivityInfo) context.Context {
	return activityctx.WithInfo(ctx, (*activityctx.Info)(&info))
}

// Heartbeats is where the heartbeats of an activity go, and where those of its last attempt come from. Its methods are called from any
// goroutine of the activity.
type Heartbeats interface {
	// Beat takes a heartbeat: its details as JSON, or none. err is not nil when it had details that cannot be kept.
	Beat(details json.RawMessage, err error)
	// LastDetails returns the details, as JSON, that the attempt before has left; nil when there are none.
	LastDetails() json.RawMessage
}

// ContextWithHeartbeats makes the context of an activity that is tested as a plain function: perdure.Heartbeat and
// perdure.HeartbeatDetails use h.
func ContextWithHeartbeats(ctx context.Context, h Heartbeats) context.Context {
	return activityctx.WithHeartbeats(ctx, h)
}
