// Package hub is a client's connection to its task hub: the backend with a clock, the caller, interceptors and the
// codecs of payloads. The other packages below client/internal use it.
package hub

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/clientcall"
	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/internal/payloads"
	"github.com/perdure/perdure/provider"
)

// Backend is the part of a provider that a client uses.
type Backend interface {
	provider.Annotations
	provider.Instances
	provider.Schedules

	ReadActivityRecord(ctx context.Context, executionID string, activityID int64) (provider.ActivityRecord, error)
	ReadWorkers(ctx context.Context) (map[string]provider.WorkerReport, error)
	VerifyWorkItemToken(ctx context.Context, token string) (provider.WorkItem, error)
	RenewWorkItemLocks(
		ctx context.Context, queue string, lock time.Duration, items ...provider.LockedWorkItem,
	) ([]provider.Renewal, error)
	VerifyCompletionToken(ctx context.Context, token string) (provider.WorkItem, error)
	ReadWorkItem(
		ctx context.Context, instanceID, executionID string, segment, activityID int64,
	) (provider.WorkItem, error)
	HeartbeatPending(ctx context.Context, executionID string, b provider.PendingHeartbeat) (counted bool, err error)
	EndPending(
		ctx context.Context, executionID string, activityID int64, attempt int, lastHeartbeatAt time.Time,
	) (ended bool, err error)
	ReadRetry(ctx context.Context, executionID string, activityID int64) (provider.ActivityRetry, error)
	ReadSettled(ctx context.Context, executionID string, from int64) (provider.Settlements, error)
	ReadCancels(ctx context.Context, executionID string, from int64) (cancels provider.Cancels, next int64, err error)
	ReadDocument(ctx context.Context, instanceID string, ref history.Reference) (json.RawMessage, error)
	DeleteIncarnation(ctx context.Context, instanceID, startID string, force bool) error
}

// Hub is a connection to a task hub. It is safe for concurrent use.
type Hub struct {
	Backend

	Now      func() time.Time
	Sleep    func(ctx context.Context, d time.Duration) error
	Calls    *clientcall.Runner
	Encoding *payloads.Encoding // nil if payloads are neither encoded nor stored
	// Waiter and UpdateWaiter wait without polling. They are nil if the backend does not support that.
	Waiter       Waiter
	UpdateWaiter UpdateWaiter
	// TailReader reads new events without earlier ones. It is nil if the backend does not support that.
	TailReader TailReader
}

// Instance reads an instance after it checks the ID.
func (h *Hub) Instance(ctx context.Context, instanceID string) (provider.Instance, error) {
	if err := inputcheck.InstanceID(instanceID); err != nil {
		return provider.Instance{}, err
	}
	return h.ReadInstance(ctx, instanceID)
}

// Call runs do inside the interceptors.
func (h *Hub) Call(ctx context.Context, operation, instanceID, name string, do func(context.Context) error) error {
	return h.Calls.Run(ctx, perdure.ClientCall{Operation: operation, InstanceID: instanceID, Name: name}, do)
}

// Send sends a message to an instance that has not ended, and returns the status that the instance had before. The
// message is only for the current incarnation. A later instance with the same ID ignores it.
func (h *Hub) Send(
	ctx context.Context, operation string, m provider.Message,
) (before provider.RuntimeStatus, err error) {
	err = h.Call(ctx, operation, m.InstanceID, m.Name, func(ctx context.Context) error {
		in, err := h.Instance(ctx, m.InstanceID)
		if err != nil {
			return err
		}
		before = in.Status
		return h.SendTo(ctx, &in, m)
	})
	return before, err
}

// SendTo sends a message to an incarnation unless it has ended.
func (h *Hub) SendTo(ctx context.Context, in *provider.Instance, m provider.Message) error {
	if in.Status.Terminal() {
		return EndedError(m.InstanceID, in.Status)
	}
	m.StartID = in.StartID
	m.TraceParent = TraceParent(ctx)
	return h.EnqueueForOrchestrator(ctx, m)
}

// EndedError returns a provider.ErrEnded with the status of the instance.
func EndedError(instanceID string, status provider.RuntimeStatus) error {
	return fmt.Errorf("instance %q is %s: %w", instanceID, status, provider.ErrEnded)
}

// NewID returns a new ULID.
func (h *Hub) NewID() string { return ulid.MustNew(ulid.Timestamp(h.Now()), rand.Reader).String() }

// TraceParent returns the trace context that a call sends.
func TraceParent(ctx context.Context) history.TraceParent {
	return history.TraceParent(perdure.TraceParentFrom(ctx))
}
