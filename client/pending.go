package client

import (
	"cmp"
	"context"
	"time"

	"github.com/perdure/perdure/client/internal/pendingtasks"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/inputcheck"
)

// Pending lists the tasks and messages that an execution of an instance is waiting for. Its JSON is that of the HTTP
// API.
type Pending struct {
	// ReadAt is when the list was read, by the client's clock.
	ReadAt time.Time `json:"readAt"`
	// Total is the number of all pending items. Items has at most as many as requested. Items that failed before come
	// first, then the oldest.
	Total int           `json:"total"`
	Items []PendingItem `json:"items"`

	// Blocked describes the builds of a blocked execution. It is nil if the execution is not blocked.
	Blocked *BlockedState `json:"blocked,omitempty"`
}

// BlockedState describes an execution whose history the current build cannot process.
type BlockedState struct {
	// Since is when a build first reported that it cannot process the history, after the last turn.
	Since time.Time `json:"since"`
	// BuildID is the build that reported last. LastTurnBuildID is the build that ran the last turn, or empty if no turn
	// has run.
	BuildID         string `json:"buildId"`
	LastTurnBuildID string `json:"lastTurnBuildId,omitempty"`
	// ParkedInputs is the number of inputs that wait for a suitable build.
	ParkedInputs int `json:"parkedInputs"`
}

// PendingItem is an activity, timer, child, event or update that an execution is waiting for.
type PendingItem struct {
	// Kind is the kind of the item.
	Kind PendingKind `json:"what"`
	// ID is the ID of the event that scheduled the item. For a sub-orchestration that waits for a retry, it is the ID
	// of the event that created the retry's timer.
	ID int64 `json:"id"`
	// Name is the name of the activity, the child's orchestration, the update or the external event, or the name of a
	// timer (perdure.WithTimerName). External events include events that were raised in another instance.
	Name string `json:"name,omitempty"`
	// UpdateID is the ID of an update.
	UpdateID string `json:"updateId,omitempty"`
	// InstanceID is the instance ID of a sub-orchestration's latest attempt, or of the instance that receives a sent
	// event or update.
	InstanceID string `json:"childId,omitempty"`
	// ScheduledAt is the time of the event with this ID.
	ScheduledAt time.Time `json:"since"`

	// Attempt is the current attempt of an activity or sub-orchestration, whether it is not yet due, queued or running.
	// It is 0 if unknown.
	Attempt int `json:"attempt,omitempty"`
	// MaxAttempts is the limit of attempts in the retry policy. It is 0 if there is no limit or no retry policy.
	MaxAttempts int `json:"maxAttempts,omitempty"`
	// LastError is the failure of the previous attempt, truncated to a few KiB. FailedAt is the time of the failure.
	// NextAttemptAt is when the current attempt is or was due.
	LastError     *history.Failure `json:"lastError,omitempty"`
	FailedAt      time.Time        `json:"failedAt,omitzero"`
	NextAttemptAt time.Time        `json:"nextTryAt,omitzero"`
	// DueAt is when a timer fires.
	DueAt time.Time `json:"dueAt,omitzero"`

	// Queue is the work queue of an activity.
	Queue string `json:"queue,omitempty"`
	// LastHeartbeatAt is when an activity last reported a heartbeat with details. Heartbeats without details are not
	// recorded.
	LastHeartbeatAt time.Time `json:"lastHeartbeatAt,omitzero"`
	// UnregisteredAt is when a worker whose build, UnregisteredBuildID, does not have the activity last received it. It
	// is zero if no worker reported that, or if a worker has started the activity since. Without UnregisteredAt, a
	// heartbeat or a failure, it is unknown whether the activity has started.
	UnregisteredAt      time.Time `json:"unknownAt,omitzero"`
	UnregisteredBuildID string    `json:"unknownBuild,omitempty"`

	// CancelledAt is when an activity or sub-orchestration with perdure.WaitForCancellation was cancelled, and
	// CancelReason the reason. Both are zero for all other items.
	CancelledAt  time.Time `json:"cancelledAt,omitzero"`
	CancelReason string    `json:"cancelReason,omitempty"`

	// ResultPendingSince is when the activity's function returned perdure.ErrPending. The attempt then needs no worker
	// and is completed with its token. NextTimeoutCheckAt is when the attempt's timeouts are checked next, which a
	// heartbeat postpones. It is zero if the attempt has no timeouts.
	ResultPendingSince time.Time `json:"handedOverAt,omitzero"`
	NextTimeoutCheckAt time.Time `json:"limitAt,omitzero"`

	// NoWorker reports that the activity has been due for more than a minute and no worker of its queue has reported
	// for ten minutes. Running workers report twice in that time. Either there is no worker, or its function fails
	// before it starts, or it has no permission to read the queue. WorkerSeenAt is when a worker last reported; zero
	// means never.
	NoWorker     bool      `json:"noWorker,omitempty"`
	WorkerSeenAt time.Time `json:"workerSeenAt,omitzero"`
}

// PendingKind is the kind of a pending item.
type PendingKind = pendingtasks.Kind

// Kinds of pending items.
const (
	PendingActivity         = pendingtasks.Activity
	PendingTimer            = pendingtasks.Timer
	PendingSubOrchestration = pendingtasks.SubOrchestration
	PendingExternalEvent    = pendingtasks.ExternalEvent
	// PendingSentEvent is an external event that was sent to another instance without a response yet.
	PendingSentEvent = pendingtasks.SentEvent
	// PendingSentUpdate is an update that was sent to another instance without a response yet.
	PendingSentUpdate = pendingtasks.SentUpdate
	// PendingUpdate is an update that was accepted and whose handler has not returned yet.
	PendingUpdate = pendingtasks.ReceivedUpdate
)

// Pending returns the tasks and messages that an execution of an instance is waiting for, up to limit items. An empty
// executionID selects the current execution. The limit is 1 to MaxPageSize; 0 means 100. The read is strongly
// consistent. An execution that has ended waits for nothing, and inputs that arrived for a blocked instance are no
// longer pending.
//
// Pending reads the whole history of the execution. A history of 100 MB takes about 115 sequential queries of 256 read
// units each: some seconds and about a third of a cent. Memory use depends only on the number of pending items. Use
// Status for frequent calls.
//
// History does not record when code stops waiting for an external event, for example after a Select. Such a wait is
// listed until an event of its name arrives.
//
// Pending returns ErrNotFound in the same cases as Cancellations, and provider.ErrCorrupt if the history cannot be
// read.
func (c *Client) Pending(ctx context.Context, instanceID, executionID string, limit int) (Pending, error) {
	of, err := historyOptions{executionID: executionID}.of(instanceID)
	if invalid := inputcheck.Limit(limit); invalid != nil {
		err = invalid
	}
	var p Pending
	if err == nil {
		p, err = c.ops.Pending(ctx, of, cmp.Or(limit, defaultPage))
	}
	if p.Items == nil { // the execution has ended, or an error
		p.ReadAt, p.Items = c.hub.Now().UTC(), []PendingItem{}
	}
	return p, wrap("pending", err)
}
