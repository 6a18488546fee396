package admin_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
)

// losing starts instance i of the given kind, fails the matching calls for the duration d, loses all messages, and then
// reconciles the hub.
func (h *lost) losing(kind string, input any, d time.Duration, fails func(c simaws.Call) bool) {
	h.t.Helper()
	fault := simaws.Interceptor(func(_ context.Context, c simaws.Call, next func() error) error {
		if fails(c) {
			return errors.New("it failed")
		}
		return next()
	})
	h.fault.Store(&fault)
	if _, err := h.Start(h.ctx, kind, input, client.WithInstanceID("i")); err != nil {
		h.t.Fatal(err)
	}
	h.ServeFor(h.ctx, d)
	h.fault.Store(nil)
	h.reconcileEmpty()
}

// reconcileEmpty empties the queues, reconciles the hub, and checks that instance i completes.
func (h *lost) reconcileEmpty() {
	h.t.Helper()
	time.Sleep(20 * time.Minute)
	h.emptied()
	if _, err := h.Reconcile(h.ctx, admin.ReconcileOptions{}); err != nil {
		h.t.Fatal(err)
	}
	h.ServeFor(h.ctx, 20*time.Minute)
	if s, err := h.Status(h.ctx, "i"); err != nil || s.Status != client.StatusCompleted {
		h.t.Errorf("instance i is %s, %v; want Completed", s.Status, err)
	}
}

// The cursor of a large turn records work items that SQS has accepted. The queues have lost these work items, so a
// reconciliation ignores the cursor.
func TestReconcile_turnCursorOfLostWorkItems_isIgnored(t *testing.T) {
	t.Parallel()
	withLost(t, func(h *lost) {
		h.losing("fan", 1200, time.Second, func(c simaws.Call) bool {
			batch, ok := c.Input.([]sqstypes.Message)
			return ok && strings.Contains(*batch[0].Body, `"activityId"`)
		})
	})
}

// Earlier executions have started detached instances, and the queue has lost the start messages. A reconciliation sends
// the start messages again.
func TestReconcile_lostDetachedStartsOfPastExecutions_areSentAgain(t *testing.T) {
	t.Parallel()
	withLost(t, func(h *lost) {
		h.losing("eternal", 3, 10*time.Minute, func(c simaws.Call) bool {
			batch, ok := c.Input.([]sqstypes.Message)
			return ok && strings.Contains(*batch[0].Body, `"kind":"start"`)
		})
		for n := range 4 {
			if s, err := h.Status(h.ctx, fmt.Sprintf("loose-%d-of-i", n)); err != nil ||
				s.Status != client.StatusCompleted {
				t.Errorf("%d: got %s, error %v", n, s.Status, err)
			}
		}
	})
}

// The history of an instance contains the end, but the status update was lost. A reconciliation writes the status.
func TestReconcile_endedInstanceWithoutStatus_statusIsWritten(t *testing.T) {
	t.Parallel()
	withLost(t, func(h *lost) {
		h.losing("chain", 1, time.Minute, func(c simaws.Call) bool {
			update, ok := c.Input.(*dynamodb.UpdateItemInput)
			return ok && strings.Contains(*update.UpdateExpression, ":wm")
		})
	})
}

// As in the test above, the status update was lost, but the hub has new queues. The sequence number of a message in an
// old queue does not identify a message in a new queue.
func TestReconcile_endedInstanceWithoutStatusOnNewQueues_statusIsWritten(t *testing.T) {
	t.Parallel()
	withLost(t, func(h *lost) {
		fault := simaws.Interceptor(func(_ context.Context, c simaws.Call, next func() error) error {
			if update, ok := c.Input.(*dynamodb.UpdateItemInput); ok &&
				strings.Contains(*update.UpdateExpression, ":wm") {
				return errors.New("it failed")
			}
			return next()
		})
		h.fault.Store(&fault)
		if _, err := h.Start(h.ctx, "chain", 1, client.WithInstanceID("i")); err != nil {
			t.Fatal(err)
		}
		h.ServeFor(h.ctx, time.Minute)
		h.fault.Store(nil)
		h.Close()
		h.begin("new-")
		if _, err := h.Reconcile(h.ctx, admin.ReconcileOptions{}); err != nil {
			t.Fatal(err)
		}
		h.ServeFor(h.ctx, time.Minute)
		if s, err := h.Status(h.ctx, "i"); err != nil || s.Status != client.StatusCompleted {
			t.Errorf("instance i is %s, %v; want Completed", s.Status, err)
		}
	})
}

// The deletion of a child has sent an outcome to the parent, and the queue has lost the message. A reconciliation
// completes the deletion, and the parent receives the outcome.
func TestReconcile_childIsBeingDeleted_parentReceivesOutcome(t *testing.T) {
	t.Parallel()
	withLost(t, func(h *lost) {
		if _, err := h.Start(h.ctx, "parent", 9, client.WithInstanceID("i")); err != nil {
			t.Fatal(err)
		}
		h.ServeFor(h.ctx, time.Second)
		child := ""
		for s, err := range h.List(h.ctx, client.ListQuery{Orchestration: "chain"}) {
			if child = s.InstanceID; err != nil {
				t.Fatal(err)
			}
		}
		crashing, stop := context.WithCancel(h.ctx)
		reported := false
		fault := simaws.Interceptor(func(ctx context.Context, c simaws.Call, next func() error) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			err := next()
			if c.Operation == "UpdateItem" && reported {
				stop()
			}
			reported = reported || c.Operation == "SendMessageBatch"
			return err
		})
		h.fault.Store(&fault)
		_ = h.Purge(crashing, child, client.Force())
		if s, err := h.Status(h.ctx, child); err != nil || s.Status != client.StatusDeleting {
			t.Fatalf("the child is %s, %v; want Deleting", s.Status, err)
		}
		h.fault.Store(nil)
		time.Sleep(20 * time.Minute)
		h.emptied()

		slow := simaws.Interceptor(func(_ context.Context, c simaws.Call, next func() error) error {
			if c.Operation == "UpdateItem" || c.Operation == "TransactWriteItems" || c.Operation == "PutItem" {
				time.Sleep(20 * time.Second)
			}
			return next()
		})
		h.fault.Store(&slow)
		done := make(chan error)
		go func() {
			_, err := h.Reconcile(h.ctx, admin.ReconcileOptions{})
			done <- err
		}()
		h.ServeFor(h.ctx, 10*time.Minute)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		h.fault.Store(nil)
		h.ServeFor(h.ctx, 10*time.Minute)
		if s, err := h.Status(h.ctx, "i"); err != nil || s.Status != client.StatusFailed {
			t.Errorf("the parent is %s, %v; want Failed", s.Status, err)
		}
	})
}

// The hub no longer has the work queue of an activity. The activity fails instead of waiting forever.
func TestReconcile_workQueueNoLongerExists_activityFails(t *testing.T) {
	t.Parallel()
	withLost(t, func(h *lost) {
		if _, err := h.Start(h.ctx, "chain", 1, client.WithInstanceID("i")); err != nil {
			t.Fatal(err)
		}
		h.ServeFor(h.ctx, time.Second)
		h.Close()
		h.begin("new-")
		delete(h.Provider.Config().WorkQueues, "default") // the provider shares this map
		so, err := h.Reconcile(h.ctx, admin.ReconcileOptions{})
		if err != nil || so.RejectedOutputs != 1 {
			t.Fatalf("got %+v, error %v", so, err)
		}
		h.ServeFor(h.ctx, time.Minute)
		if s, err := h.Status(h.ctx, "i"); err != nil || s.Status != client.StatusFailed ||
			!strings.Contains(s.Failure.Message, "does not exist in hub") {
			t.Errorf("instance i is %s with failure %+v, %v; want Failed", s.Status, s.Failure, err)
		}
	})
}

// The hub has new queues but keeps the schedule group of the stack. An old schedule has the same name as the schedule
// of a timer, and its target is the old queue. A reconciliation replaces the old schedule.
func TestReconcile_newQueuesWithOldSchedules_replacesSchedules(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{}, nil, func(h *lost) {
		if _, err := h.Start(h.ctx, "far", kinds["far"], client.WithInstanceID("i")); err != nil {
			t.Fatal(err)
		}
		h.ServeFor(h.ctx, 20*time.Minute)
		backup := h.Cloud.Table.Backup()
		h.Close()
		time.Sleep(20 * time.Minute)
		h.Cloud.Table.Restore(backup)
		hub, err := simhub.New(simhub.Options{
			Registry: h.registry(true), On: h.Hub, NewQueues: "new-", SameGroup: true, BuildID: "fixed",
		})
		if err != nil {
			t.Fatal(err)
		}
		h.Hub, h.Client, h.operator = hub, client.New(hub.Provider), admin.New(hub.Provider)
		if so, err := h.Reconcile(h.ctx, admin.ReconcileOptions{}); err != nil || so.Failed > 0 {
			t.Fatalf("got %+v, error %v", so, err)
		}
		for range 24 {
			h.ServeFor(h.ctx, time.Hour)
			if _, err := h.Renewer.Sweep(h.ctx); err != nil {
				t.Error(err)
			}
		}
		if s, err := h.Status(h.ctx, "i"); err != nil || s.Status != client.StatusCompleted {
			t.Errorf("the 3-hour timer has not fired after a day: instance i is %s, %v; want Completed", s.Status, err)
		}
	})
}
