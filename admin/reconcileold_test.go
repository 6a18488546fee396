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

// unheard fails what receives messages of a kind, so that they stay in the inbox.
func (h *lost) unheard(kind string) {
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

// aged20 has the hub be as it was 20 days ago: its queues are empty.
func (h *lost) aged20() {
	h.t.Helper()
	h.fault.Store(nil)
	time.Sleep(20 * 24 * time.Hour)
	h.emptied()
}

// A child ended before the second that was restored, three weeks ago, and its outcome was in the queue: the parent has
// it.
func TestAParentHasTheOutcomeOfAChildThatEndedLongAgo(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{BatchSize: 1}, nil, func(h *lost) {
		h.unheard("childOutcome")
		if _, err := h.Start(h.ctx, "parent", 1, client.WithInstanceID("i")); err != nil {
			t.Fatal(err)
		}
		h.ServeFor(h.ctx, 5*time.Minute)
		h.aged20()
		so, err := h.Reconcile(h.ctx, admin.ReconcileOptions{})
		if err != nil || so.Active != 1 || so.EndedBeforeLookback != 1 {
			t.Errorf("%+v, %v", so, err)
		}
		h.ServeFor(h.ctx, time.Minute)
		if s, err := h.Status(h.ctx, "i"); err != nil || s.Status != client.StatusCompleted {
			t.Errorf("the parent is %s, %v", s.Status, err)
		}
		if so, err := h.Reconcile(h.ctx, admin.ReconcileOptions{}); err != nil || so.Sent != 0 {
			t.Errorf("nobody waits for anything, and %d messages are sent, %v", so.Sent, err)
		}
	})
}

// A parent left its child and ended three weeks ago, and the cancel was in the queue: the child is cancelled.
func TestAChildIsCancelledWhoseParentEndedLongAgo(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{BatchSize: 1}, nil, func(h *lost) {
		h.unheard("cancel")
		if _, err := h.Start(h.ctx, "leaves", time.Minute, client.WithInstanceID("i")); err != nil {
			t.Fatal(err)
		}
		h.ServeFor(h.ctx, 5*time.Minute)
		h.aged20()
		if so, err := h.Reconcile(h.ctx, admin.ReconcileOptions{}); err != nil || so.Active != 1 ||
			so.EndedBeforeLookback != 1 {
			t.Errorf("%+v, %v", so, err)
		}
		h.ServeFor(h.ctx, time.Minute)
		if s, err := h.Status(h.ctx, "left-by-i"); err != nil || s.Status != client.StatusCancelled {
			t.Errorf("the child is %s, %v", s.Status, err)
		}
	})
}

// A detached start of three weeks ago is left out, and counted; with 28 days it is sent.
func TestWhatIsLeftOutIsCounted(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{BatchSize: 1}, nil, func(h *lost) {
		h.unheard("start")
		_, err := h.Start(h.ctx, "detaches", 1, client.WithInstanceID("i"))
		if err != nil {
			t.Fatal(err)
		}
		h.ServeFor(h.ctx, 5*time.Minute)
		h.aged20()
		so, err := h.Reconcile(h.ctx, admin.ReconcileOptions{})
		if err != nil || so.SkippedOutputs != 1 || so.Sent != 0 {
			t.Errorf("%+v, %v", so, err)
		}
		if so, err = h.Reconcile(h.ctx, admin.ReconcileOptions{Lookback: 28 * 24 * time.Hour}); err != nil ||
			so.SkippedOutputs != 0 || so.Sent != 1 {
			t.Errorf("with 28 days: %+v, %v", so, err)
		}
		h.ServeFor(h.ctx, 5*time.Minute)
		if s, err := h.Status(h.ctx, "loose-of-i"); err != nil || s.Status != client.StatusCompleted {
			t.Errorf("what it started is %s, %v", s.Status, err)
		}
	})
}

// An instance has continued as new once a minute for three days: some hundred of its executions are looked at, and it
// says so.
func TestAnEternalInstanceCostsNoMoreThanOthers(t *testing.T) {
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
		t.Logf("%d queries of an instance that has continued as new 4,320 times: %v", queries, h.Cloud.Counts())
		if err != nil || so.TruncatedInstances != 1 || so.Active != 1 || queries > 150 || queries < 50 {
			t.Errorf("%d queries; want 150 at most: %+v, %v", queries, so, err)
		}
	})
}
