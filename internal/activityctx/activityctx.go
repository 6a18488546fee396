// Package activityctx defines the values in the context of an activity. A worker adds the values, and package perdure
// reads them for the activity's code.
package activityctx

import (
	"context"
	"encoding/json"
)

// Info identifies the running activity. It has the fields of perdure.ActivityInfo, which documents them.
type Info struct {
	InstanceID, ExecutionID string
	ActivityID              int64
	Name                    string
	Attempt, DeliveryCount  int
	Queue                   string
	CompletionToken         string
}

// Heartbeats records the heartbeats of an activity and returns those of its last attempt. Its methods are safe for
// concurrent use, even after the activity has returned.
type Heartbeats interface {
	// Record records a heartbeat with its encoded details, or without details. A non-nil err means that the details
	// could not be encoded.
	Record(details json.RawMessage, err error)
	// LastDetails returns the details of the previous attempt or delivery, or nil if there are none.
	LastDetails() json.RawMessage
}

// Activity describes a running activity to its context.
type Activity interface {
	Heartbeats
	Info() Info
	// Token returns the completion token of the attempt. It creates the token on demand, because few activities need a
	// token.
	Token() string
	// TakesLargePayloads reports whether the worker has a payload store.
	TakesLargePayloads() bool
}

type (
	infoKey       struct{}
	tokenKey      struct{}
	heartbeatsKey struct{}
	largeKey      struct{}
)

// WithInfo returns a context in which InfoFrom finds info. The caller must not change info afterwards.
func WithInfo(ctx context.Context, info *Info) context.Context {
	return context.WithValue(ctx, infoKey{}, info)
}

// For returns a context for the worker's own work for an activity. It has neither the heartbeats nor the token, which
// only the activity's code may use.
func For(ctx context.Context, a Activity) context.Context { return &activityContext{ctx, a, false} }

// ForCode returns the context of the code of an activity.
func ForCode(ctx context.Context, a Activity) context.Context { return &activityContext{ctx, a, true} }

// activityContext contains all values of an activity, because a separate context for each value would cost more.
type activityContext struct {
	context.Context //nolint:containedctx // the type is a context

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

// InfoFrom returns the Info of a context and does not create its CompletionToken. It returns a zero Info if the context
// is not from a worker.
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

// InfoWithToken returns the Info of a context, like InfoFrom, with its CompletionToken.
func InfoWithToken(ctx context.Context) Info {
	info := InfoFrom(ctx)
	if a, ok := ctx.Value(tokenKey{}).(Activity); ok {
		info.CompletionToken = a.Token()
	}
	return info
}

// WithHeartbeats returns a context in which HeartbeatsFrom finds h.
func WithHeartbeats(ctx context.Context, h Heartbeats) context.Context {
	return context.WithValue(ctx, heartbeatsKey{}, h)
}

// WithLargePayloads returns a context for which TakesLargePayloads returns true.
func WithLargePayloads(ctx context.Context) context.Context {
	return context.WithValue(ctx, largeKey{}, true)
}

// TakesLargePayloads reports whether the context is from a worker with a payload store.
func TakesLargePayloads(ctx context.Context) bool { return ctx.Value(largeKey{}) != nil }

// HeartbeatsFrom returns the Heartbeats of a context, or false if the context is not from a worker.
func HeartbeatsFrom(ctx context.Context) (Heartbeats, bool) {
	h, ok := ctx.Value(heartbeatsKey{}).(Heartbeats)
	return h, ok
}
