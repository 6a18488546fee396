package admin_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
)

// failDeliveries fails the delivery of messages of the given kind, so that these messages stay in the inbox.
func (h *lost) failDeliveries(kind string) {
	fault := simaws.Interceptor(func(_ context.Context, c simaws.Call, next func() error) error {
		if batch, ok := c.Input.([]sqstypes.Message); ok {
			for i := range batch {
				if strings.Contains(*batch[i].Body, `"kind":"`+kind+`"`) {
					return errors.New("it failed")
				}
			}
		}
		return next()
	})
	h.fault.Store(&fault)
}

// aged20 removes the fault, waits 20 days, and empties the queues.
func (h *lost) aged20() {
	h.t.Helper()
	h.fault.Store(nil)
	time.Sleep(20 * 24 * time.Hour)
	h.emptied()
}

// A child ended three weeks ago, before the restored point in time, and the queue has lost the outcome of the child. A
// reconciliation sends the outcome to the parent.
func TestReconcile_childEndedThreeWeeksAgo_parentReceivesOutcome(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{BatchSize: 1}, nil, func(h *lost) {
		h.failDeliveries("childOutcome")
		if _, err := h.Start(h.ctx, "parent", 1, client.WithInstanceID("i")); err != nil {
			t.Fatal(err)
		}
		h.ServeFor(h.ctx, 5*time.Minute)
		h.aged20()
		so, err := h.Reconcile(h.ctx, admin.ReconcileOptions{})
		if err != nil || so.Active != 1 || so.EndedBeforeLookback != 1 {
			t.Errorf("got %+v, error %v", so, err)
		}
		h.ServeFor(h.ctx, time.Minute)
		if s, err := h.Status(h.ctx, "i"); err != nil || s.Status != client.StatusCompleted {
			t.Errorf("the parent is %s, %v; want Completed", s.Status, err)
		}
		if so, err := h.Reconcile(h.ctx, admin.ReconcileOptions{}); err != nil || so.Sent != 0 {
			t.Errorf("reconciling a completed parent sends %d messages, %v; want 0", so.Sent, err)
		}
	})
}

// A parent abandoned its child and ended three weeks ago, and the queue has lost the cancel request. A reconciliation
// cancels the child.
func TestReconcile_parentEndedThreeWeeksAgo_childIsCancelled(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{BatchSize: 1}, nil, func(h *lost) {
		h.failDeliveries("cancel")
		if _, err := h.Start(h.ctx, "leaves", time.Minute, client.WithInstanceID("i")); err != nil {
			t.Fatal(err)
		}
		h.ServeFor(h.ctx, 5*time.Minute)
		h.aged20()
		if so, err := h.Reconcile(h.ctx, admin.ReconcileOptions{}); err != nil || so.Active != 1 ||
			so.EndedBeforeLookback != 1 {
			t.Errorf("got %+v, error %v", so, err)
		}
		h.ServeFor(h.ctx, time.Minute)
		if s, err := h.Status(h.ctx, "left-by-i"); err != nil || s.Status != client.StatusCancelled {
			t.Errorf("the child is %s, %v; want Cancelled", s.Status, err)
		}
	})
}

// A reconciliation skips and counts a detached start from three weeks ago. With a lookback of 28 days, the
// reconciliation sends the start.
func TestReconcile_detachedStartOlderThanLookback_isSkippedAndCounted(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{BatchSize: 1}, nil, func(h *lost) {
		h.failDeliveries("start")
		_, err := h.Start(h.ctx, "detaches", 1, client.WithInstanceID("i"))
		if err != nil {
			t.Fatal(err)
		}
		h.ServeFor(h.ctx, 5*time.Minute)
		h.aged20()
		so, err := h.Reconcile(h.ctx, admin.ReconcileOptions{})
		if err != nil || so.SkippedOutputs != 1 || so.Sent != 0 {
			t.Errorf("got %+v, error %v", so, err)
		}
		if so, err = h.Reconcile(h.ctx, admin.ReconcileOptions{Lookback: 28 * 24 * time.Hour}); err != nil ||
			so.SkippedOutputs != 0 || so.Sent != 1 {
			t.Errorf("with a lookback of 28 days: got %+v, error %v", so, err)
		}
		h.ServeFor(h.ctx, 5*time.Minute)
		if s, err := h.Status(h.ctx, "loose-of-i"); err != nil || s.Status != client.StatusCompleted {
			t.Errorf("the detached instance is %s, %v; want Completed", s.Status, err)
		}
	})
}

// An instance has continued as new once a minute for three days. A reconciliation reads about a hundred of its
// executions, and reports the instance as truncated.
func TestReconcile_thousandsOfExecutions_readsAboutAHundred(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	fill := func(_ *lost, r *perdure.Registry) {
		perdure.AddOrchestration(r, "ticks", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
			if err := perdure.Sleep(ctx, time.Minute); err != nil {
				return 0, err
			}
			return perdure.ContinueAsNew[int](ctx, n+1)
		})
	}
	onHub(t, simhub.Options{}, fill, func(h *lost) {
		if _, err := h.Start(h.ctx, "ticks", 0, client.WithInstanceID("i")); err != nil {
			t.Fatal(err)
		}
		h.ServeFor(h.ctx, 3*24*time.Hour)
		h.Close()
		h.Cloud.ResetCounts()
		so, err := h.Reconcile(h.ctx, admin.ReconcileOptions{})
		queries := h.Cloud.Counts()["DynamoDB.Query"]
		t.Logf("%d queries for an instance that has continued as new 4,320 times: %v", queries, h.Cloud.Counts())
		if err != nil || so.TruncatedInstances != 1 || so.Active != 1 || queries > 150 || queries < 50 {
			t.Errorf("got %d queries, want 50 to 150: %+v, error %v", queries, so, err)
		}
	})
}
