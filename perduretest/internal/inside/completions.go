package inside

import (
	"context"
	"time"

	"github.com/perdure/perdure/provider"
)

// completions runs calls of asynchronous completion and of the payload store in the bubble.
type completions struct{ hub }

func (b *completions) VerifyCompletionToken(ctx context.Context, token string) (w provider.WorkItem, err error) {
	b.run(ctx, func(ctx context.Context) { w, err = b.Provider.VerifyCompletionToken(ctx, token) })
	return w, err
}

func (b *completions) ReadWorkItem(
	ctx context.Context, instanceID, executionID string, segment, activityID int64,
) (w provider.WorkItem, err error) {
	b.run(ctx, func(ctx context.Context) {
		w, err = b.Provider.ReadWorkItem(ctx, instanceID, executionID, segment, activityID)
	})
	return w, err
}

func (b *completions) HeartbeatPending(
	ctx context.Context, executionID string, heartbeat provider.PendingHeartbeat,
) (counted bool, err error) {
	b.run(ctx, func(ctx context.Context) { counted, err = b.Provider.HeartbeatPending(ctx, executionID, heartbeat) })
	return counted, err
}

func (b *completions) EndPending(
	ctx context.Context, executionID string, activityID int64, attempt int, lastHeartbeatAt time.Time,
) (ended bool, err error) {
	b.run(ctx, func(ctx context.Context) {
		ended, err = b.Provider.EndPending(ctx, executionID, activityID, attempt, lastHeartbeatAt)
	})
	return ended, err
}

func (b *completions) ReadRetry(
	ctx context.Context, executionID string, activityID int64,
) (r provider.ActivityRetry, err error) {
	b.run(ctx, func(ctx context.Context) { r, err = b.Provider.ReadRetry(ctx, executionID, activityID) })
	return r, err
}

func (b *completions) ReadSettled(
	ctx context.Context, executionID string, from int64,
) (s provider.Settlements, err error) {
	b.run(ctx, func(ctx context.Context) { s, err = b.Provider.ReadSettled(ctx, executionID, from) })
	return s, err
}

func (b *completions) ReadCancels(
	ctx context.Context, executionID string, from int64,
) (c provider.Cancels, next int64, err error) {
	b.run(ctx, func(ctx context.Context) { c, next, err = b.Provider.ReadCancels(ctx, executionID, from) })
	return c, next, err
}
