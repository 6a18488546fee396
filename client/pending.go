package client

import (
	"cmp"
	"context"
	"time"

	"github.com/perdure/perdure/client/internal/pendingtasks"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/inputcheck"
)

// Pending lists the tasks and messages that an execution of an instance is waiting for. Its JSON is the same as in the
// HTTP API.
type Pending struct {
	// ReadAt is the time of the read, from the client's clock.
	ReadAt time.Time `json:"readAt"`
	// Total is the number of all pending items. Items contains at most the requested number of items. Items that failed
	// before come first. The order is otherwise by age, oldest first.
	Total int           `json:"total"`
	Items []PendingItem `json:"items"`

	// Blocked describes the builds of a blocked execution. It is nil if the execution is not blocked.
	Blocked *BlockedState `json:"blocked,omitempty"`
}

// BlockedState describes an execution whose history the current build cannot process.
type BlockedState struct {
	// Since is the time at which a build first reported after the last turn that it cannot process the history.
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

	// Attempt is the number of the current attempt of an activity or sub-orchestration. The attempt can be running,
	// queued or not yet due. Attempt is 0 if unknown.
	Attempt int `json:"attempt,omitempty"`
	// MaxAttempts is the limit of attempts in the retry policy. It is 0 without a limit or a retry policy.
	MaxAttempts int `json:"maxAttempts,omitempty"`
	// LastError is the failure of the previous attempt, truncated to a few KiB. FailedAt is the time of the failure.
	// NextAttemptAt is the time at which the current attempt is or was due.
	LastError     *history.Failure `json:"lastError,omitempty"`
	FailedAt      time.Time        `json:"failedAt,omitzero"`
	NextAttemptAt time.Time        `json:"nextTryAt,omitzero"`
	// DueAt is the time at which a timer fires.
	DueAt time.Time `json:"dueAt,omitzero"`

	// Queue is the work queue of an activity.
	Queue string `json:"queue,omitempty"`
	// LastHeartbeatAt is the time of the last heartbeat of an activity with details. Heartbeats without details are not
	// recorded.
	LastHeartbeatAt time.Time `json:"lastHeartbeatAt,omitzero"`
	// UnregisteredAt is the last time at which the activity was received by a worker whose build does not have it.
	// UnregisteredBuildID is that build. UnregisteredAt is zero if no worker has reported this, or if a worker has
	// started the activity since then. Without UnregisteredAt, a heartbeat or a failure, it is unknown whether the
	// activity has started.
	UnregisteredAt      time.Time `json:"unknownAt,omitzero"`
	UnregisteredBuildID string    `json:"unknownBuild,omitempty"`

	// CancelledAt is the time of the cancellation of an activity or sub-orchestration with perdure.WaitForCancellation.
	// CancelReason is the reason. Both are zero for all other items.
	CancelledAt  time.Time `json:"cancelledAt,omitzero"`
	CancelReason string    `json:"cancelReason,omitempty"`

	// ResultPendingSince is the time at which the activity's function returned perdure.ErrPending. The attempt then
	// waits for asynchronous completion and needs no worker. NextTimeoutCheckAt is the time of the next check of the
	// attempt's timeouts. A heartbeat postpones the check. NextTimeoutCheckAt is zero if the attempt has no timeouts.
	ResultPendingSince time.Time `json:"handedOverAt,omitzero"`
	NextTimeoutCheckAt time.Time `json:"limitAt,omitzero"`

	// NoWorker reports that the activity has been due for more than a minute and no worker of its queue has reported
	// for ten minutes. Running workers report twice in that time. Possible causes are that no worker is deployed, its
	// function fails at the start, or it has no permission to read the queue. WorkerSeenAt is the time of the last
	// report of a worker, or zero.
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
	// PendingSentEvent is an external event that was sent to another instance and has no response yet.
	PendingSentEvent = pendingtasks.SentEvent
	// PendingSentUpdate is an update that was sent to another instance and has no response yet.
	PendingSentUpdate = pendingtasks.SentUpdate
	// PendingUpdate is an accepted update whose handler has not returned yet.
	PendingUpdate = pendingtasks.ReceivedUpdate
)

// Pending returns the tasks and messages that an execution of an instance is waiting for, up to limit items. An empty
// executionID selects the current execution. The limit is 1 to MaxPageSize; 0 means 100. The read is strongly
// consistent. An execution that has ended has no pending items. Inputs that have arrived for a blocked instance are not
// pending.
//
// Pending reads the whole history of the execution. A history of 100 MB takes about 115 sequential queries of 256 read
// units each. They take some seconds and cost about a third of a cent. Memory use depends only on the number of pending
// items. Use Status for frequent calls.
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
