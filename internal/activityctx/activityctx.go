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
	Attempt, AttemptCount   int
	Queue                   string
	Token                   string
}

// Heartbeats is where the heartbeats of an activity go, and where those of its last attempt come from. Its methods are called from any
// goroutine, also after the activity has returned.
type Heartbeats interface {
	// Beat takes a heartbeat: its encoded details, or none. err is not nil when it had details that cannot be kept.
	Beat(details json.RawMessage, err error)
	// LastDetails are the details that the attempt or delivery before has left; nil when there are none.
	LastDetails() json.RawMessage
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

// InfoFrom returns what runs under a context; zero when no worker has made it. It has not the token of WithToken.
func InfoFrom(ctx context.Context) Info {
	if info, ok := ctx.Value(infoKey{}).(*Info); ok {
		return *info
	}
	return Info{}
}

// WithToken makes a context in which InfoWithToken has the token that sign makes, whenever it is asked for: few activities ask.
func WithToken(ctx context.Context, sign func() string) context.Context {
	return context.WithValue(ctx, tokenKey{}, sign)
}

// InfoWithToken is InfoFrom, with the token.
func InfoWithToken(ctx context.Context) Info {
	info := InfoFrom(ctx)
	if token, ok := ctx.Value(tokenKey{}).(func() string); ok {
		info.Token = token()
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
