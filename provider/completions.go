package provider

import (
	"context"
	"time"
)

// Completions signs and verifies tokens of activities, and completes activities by token. Clients use it for
// asynchronous completion. Workers without this module use it to extend locks.
type Completions interface {
	// CompletionTokens returns the signer of completion tokens. A worker calls it before an activity starts, and signs
	// the token when the activity requests it.
	CompletionTokens(ctx context.Context) (CompletionSigner, error)
	// VerifyCompletionToken decodes a completion token and returns a work item with the signed fields, including
	// InstanceID. It returns a *ForeignTokenError if the token belongs to another hub, and ErrInvalidToken if the token
	// is invalid.
	VerifyCompletionToken(ctx context.Context, token string) (WorkItem, error)
	// VerifyWorkItemToken decodes the token of a work item (WorkItem.Token) and returns its queue, execution, segment,
	// activity and attempt. It returns ErrInvalidToken if the token was not issued by this hub.
	VerifyWorkItemToken(ctx context.Context, token string) (WorkItem, error)
	// ReadWorkItem reads the work item of an activity's first attempt from the segment that scheduled it. It returns
	// ErrNotFound if the segment was deleted or does not schedule the activity.
	ReadWorkItem(ctx context.Context, instanceID, executionID string, segment, activityID int64) (WorkItem, error)
	// HeartbeatPending writes a heartbeat that was sent with a completion token. If a later heartbeat or a heartbeat of
	// a later attempt is stored, or if EndPending ended the attempt, nothing is written and counted is false.
	HeartbeatPending(ctx context.Context, executionID string, b PendingHeartbeat) (counted bool, err error)
	// EndPending ends a pending attempt that timed out or was completed, so that its later heartbeats are rejected, and
	// a completion that repeats the first one before its turn. lastHeartbeatAt is the time of the stored heartbeat, or
	// zero if no heartbeat is stored. If lastHeartbeatAt differs from the stored time, nothing is written and ended is
	// false. The call is idempotent.
	EndPending(ctx context.Context, executionID string, activityID int64, attempt int,
		lastHeartbeatAt time.Time) (ended bool, err error)
}

// CompletionSigner signs completion tokens. Package worktoken implements it. It is safe for concurrent use.
type CompletionSigner interface {
	// SignCompletion returns the completion token of an attempt. The token is a secret, because its holder can complete
	// the attempt. Do not log it.
	SignCompletion(w *WorkItem) string
}
