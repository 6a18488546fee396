package dynamo

import (
	"context"
	"iter"
	"time"

	"github.com/perdure/perdure/provider"
)

// PutActivityRecords implements provider.WorkItems.
func (p *Provider) PutActivityRecords(ctx context.Context, executionID string, records ...provider.ActivityRecord) error {
	return p.attempts.PutActivityRecords(ctx, executionID, records...)
}

// ReadActivityRecord implements provider.WorkItems.
func (p *Provider) ReadActivityRecord(ctx context.Context, executionID string, activityID int64) (provider.ActivityRecord, error) {
	return p.attempts.ReadActivityRecord(ctx, executionID, activityID)
}

// ReadActivityRecords implements provider.Instances.
func (p *Provider) ReadActivityRecords(ctx context.Context, executionID string) iter.Seq2[provider.ActivityRecord, error] {
	return p.attempts.ReadActivityRecords(ctx, executionID)
}

// HeartbeatPending implements provider.WorkItems.
func (p *Provider) HeartbeatPending(ctx context.Context, executionID string, b provider.PendingHeartbeat) (counted bool, err error) {
	return p.attempts.HeartbeatPending(ctx, executionID, b)
}

// TimeOutPending implements provider.WorkItems.
func (p *Provider) TimeOutPending(ctx context.Context, executionID string, activityID int64, attempt int, beatenAt time.Time) (ended bool, err error) {
	return p.attempts.TimeOutPending(ctx, executionID, activityID, attempt, beatenAt)
}

// PutCrashMarker implements provider.PoisonHandler.
func (p *Provider) PutCrashMarker(ctx context.Context, a provider.Attempt) (died int, err error) {
	return p.attempts.PutCrashMarker(ctx, a)
}

// DeleteCrashMarker implements provider.PoisonHandler.
func (p *Provider) DeleteCrashMarker(ctx context.Context, a provider.Attempt) error {
	return p.attempts.DeleteCrashMarker(ctx, a)
}

// ReadRetry implements provider.WorkItems.
func (p *Provider) ReadRetry(ctx context.Context, executionID string, activityID int64) (provider.ActivityRetry, error) {
	return p.attempts.ReadRetry(ctx, executionID, activityID)
}

// ReadRetries implements provider.Instances.
func (p *Provider) ReadRetries(ctx context.Context, executionID string) iter.Seq2[provider.ActivityRetry, error] {
	return p.attempts.ReadRetries(ctx, executionID)
}

// ClaimRun implements provider.WorkItems.
func (p *Provider) ClaimRun(ctx context.Context, r provider.Run) (provider.RunClaim, error) {
	return p.attempts.ClaimRun(ctx, r)
}

// CompleteRun implements provider.WorkItems.
func (p *Provider) CompleteRun(ctx context.Context, r provider.Run, o *provider.ActivityOutcome) error {
	return p.attempts.CompleteRun(ctx, r, o)
}

// ReleaseRun implements provider.WorkItems.
func (p *Provider) ReleaseRun(ctx context.Context, r provider.Run, leave *provider.Run) error {
	return p.attempts.ReleaseRun(ctx, r, leave)
}
