package provider

import (
	"context"
	"time"
)

// Completions is for clients that complete activities asynchronously, and for workers that run activities without this
// module. Both identify an activity by a token.
type Completions interface {
	// CompletionTokens returns the signer of completion tokens. A worker calls it before an activity starts, and signs
	// the token when the activity requests it.
	CompletionTokens(ctx context.Context) (CompletionSigner, error)
	// VerifyCompletionToken decodes a completion token and returns a work item with the signed fields, including
	// InstanceID. It returns a *ForeignTokenError if the token belongs to another hub, and ErrInvalidToken if it is
	// invalid.
	VerifyCompletionToken(ctx context.Context, token string) (WorkItem, error)
	// VerifyWorkItemToken decodes the token of a work item (WorkItem.Token) and returns its queue, execution, segment,
	// activity and attempt. It returns ErrInvalidToken if the token was not issued by this hub.
	VerifyWorkItemToken(ctx context.Context, token string) (WorkItem, error)
	// ReadWorkItem reads the work item of an activity's first attempt from the segment that scheduled it. It returns
	// ErrNotFound if the segment does not schedule the activity, or was deleted.
	ReadWorkItem(ctx context.Context, instanceID, executionID string, segment, activityID int64) (WorkItem, error)
	// HeartbeatPending writes a heartbeat that was sent with a completion token. counted is false, and nothing is
	// written, if a later heartbeat or a heartbeat of a later attempt is stored, or if TimeOutPending ended the
	// attempt.
	HeartbeatPending(ctx context.Context, executionID string, b PendingHeartbeat) (counted bool, err error)
	// TimeOutPending ends a pending attempt that exceeded a limit. Its later heartbeats are rejected. ended is false,
	// and nothing is written, if the stored heartbeat is not the one of beatenAt (zero means none). The call is
	// idempotent.
	TimeOutPending(ctx context.Context, executionID string, activityID int64, attempt int,
		beatenAt time.Time) (ended bool, err error)
}

// CompletionSigner signs completion tokens. Package worktoken implements it. It is safe for concurrent use.
type CompletionSigner interface {
	// SignCompletion returns the completion token of an attempt. The token is a secret: its holder can complete the
	// attempt. Do not log it.
	SignCompletion(w *WorkItem) string
}
