// Package activityctx is what the context of an activity carries beside deadlines and cancellation: a worker puts it in, and package
// perdure takes it out for the activity's code.
package activityctx

import (
	"context"
	"encoding/json"
)

// Info says which activity is running, and for whom. It has the fields of perdure.ActivityInfo, which documents them.
type Info struct {
	InstanceID, ExecutionID string
	ActivityID              int64
	Name                    string
	Attempt, DeliveryCount  int
	Queue                   string
	CompletionToken         string
}

// Heartbeats is where the heartbeats of an activity go, and where those of its last attempt come from. Its methods are called from any
// goroutine, also after the activity has returned.
type Heartbeats interface {
	// Beat takes a heartbeat: its encoded details, or none. err is not nil when it had details that cannot be kept.
	Record(details json.RawMessage, err error)
	// LastDetails are the details that the attempt or delivery before has left; nil when there are none.
	LastDetails() json.RawMessage
}

// Activity is what a worker knows of an activity that it runs.
type Activity interface {
	Heartbeats
	Info() Info
	// Token makes the token by which the activity may be completed from outside: few activities ask for it.
	Token() string
	// TakesLargePayloads reports whether the worker has a store of large payloads.
	TakesLargePayloads() bool
}

type (
	infoKey       struct{}
	tokenKey      struct{}
	heartbeatsKey struct{}
	largeKey      struct{}
)

// WithInfo makes a context in which InfoFrom finds info, which must not change any more.
func WithInfo(ctx context.Context, info *Info) context.Context {
	return context.WithValue(ctx, infoKey{}, info)
}

// For makes a context of what a worker does for an activity: with all but its heartbeats and its token, which are for the code alone.
func For(ctx context.Context, a Activity) context.Context { return &activityContext{ctx, a, false} }

// ForCode makes a context of the code of an activity.
func ForCode(ctx context.Context, a Activity) context.Context { return &activityContext{ctx, a, true} }

// activityContext has all that an activity's context carries in one value: each of its own would cost as much.
type activityContext struct {
	context.Context //nolint:containedctx // it is one

	activity Activity
	ofCode   bool
}

// Value implements context.Context.
func (c *activityContext) Value(key any) any {
	switch key.(type) {
	case infoKey:
		return c.activity
	case largeKey:
		if c.activity.TakesLargePayloads() {
			return true
		}
	case tokenKey, heartbeatsKey:
		if c.ofCode {
			return c.activity
		}
	}
	return c.Context.Value(key)
}

// InfoFrom returns what runs under a context; zero when no worker has made it. It has not the token.
func InfoFrom(ctx context.Context) Info {
	switch a := ctx.Value(infoKey{}).(type) {
	case *Info:
		return *a
	case Activity:
		return a.Info()
	default:
		return Info{}
	}
}

// InfoWithToken is InfoFrom, with the token.
func InfoWithToken(ctx context.Context) Info {
	info := InfoFrom(ctx)
	if a, ok := ctx.Value(tokenKey{}).(Activity); ok {
		info.CompletionToken = a.Token()
	}
	return info
}

// WithHeartbeats makes a context in which HeartbeatsFrom finds h.
func WithHeartbeats(ctx context.Context, h Heartbeats) context.Context {
	return context.WithValue(ctx, heartbeatsKey{}, h)
}

// WithLargePayloads makes a context of a worker that has a store of large payloads.
func WithLargePayloads(ctx context.Context) context.Context {
	return context.WithValue(ctx, largeKey{}, true)
}

// TakesLargePayloads reports whether the worker of an activity has a store of large payloads.
func TakesLargePayloads(ctx context.Context) bool { return ctx.Value(largeKey{}) != nil }

// HeartbeatsFrom returns where the heartbeats under a context go; false when no worker has made it.
func HeartbeatsFrom(ctx context.Context) (Heartbeats, bool) {
	h, ok := ctx.Value(heartbeatsKey{}).(Heartbeats)
	return h, ok
}
