package perdure

import "context"

// ActivityInfo says which activity is running, and for whom.
type ActivityInfo struct {
	InstanceID, ExecutionID string
	// ActivityID is the id of the event that scheduled the activity: with ExecutionID, a key that is the same in every
	// attempt and delivery, for services that take an idempotency key.
	ActivityID int64
	Name       string
	// Attempt counts the tries of a retry policy from 1, AttemptCount the deliveries of this attempt's message.
	Attempt, AttemptCount int
	Queue                 string
}

type activityInfoKey struct{}

// ActivityInfoFrom returns what runs under an activity's context. It is zero outside a worker, so that activities can be
// tested as plain functions.
func ActivityInfoFrom(ctx context.Context) ActivityInfo {
	info, _ := ctx.Value(activityInfoKey{}).(ActivityInfo)
	return info
}

// ContextWithActivityInfo makes the context of an activity. It serves dispatchers, and tests of activities.
func ContextWithActivityInfo(ctx context.Context, info ActivityInfo) context.Context {
	return context.WithValue(ctx, activityInfoKey{}, info)
}
