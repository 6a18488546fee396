package dispatch_test

import (
	"context"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/simhub"
)

// pending returns the only pending task of an instance.
func (h *hub) pending(id string) client.PendingItem {
	h.t.Helper()
	p, err := client.New(h.Provider).Pending(h.t.Context(), id, "", 0)
	if err != nil || p.Total != 1 || len(p.Items) != 1 {
		h.t.Fatalf("pending: %+v, %v", p, err)
	}
	return p.Items[0]
}

// A worker of an earlier build receives an activity that only a new build registers. The pending item shows this until
// a worker of the new build starts the activity.
func TestPending_unregisteredActivity_showsBuild(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "new", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		return perdure.CallActivityByName[int](ctx, "added", 1).Await(ctx)
	})
	inBubble(t, simhub.Options{Registry: r}, func(ctx context.Context, h *hub) {
		in := h.start("new", 0)
		h.turn(0)
		if x := h.pending(in.InstanceID); x.Name != "added" || !x.UnregisteredAt.IsZero() {
			t.Errorf("before delivery: got %+v", x)
		}
		began := time.Now()
		h.serveFor(10 * time.Minute)
		x := h.pending(in.InstanceID)
		if seen := x.UnregisteredAt.Sub(began); seen <= 0 || seen > 10*time.Minute || x.UnregisteredBuildID != "test" {
			t.Errorf("after ten minutes: unregistered since %v in build %q", seen, x.UnregisteredBuildID)
		}
		if age := time.Since(x.UnregisteredAt); age > 6*time.Minute {
			t.Errorf("last report of the unregistered activity was %v ago", age)
		}

		deployed, running := perdure.NewRegistry(), false
		perdure.AddActivity(deployed, "added", func(ctx context.Context, n int) (int, error) {
			if x := h.pending(in.InstanceID); !x.UnregisteredAt.IsZero() {
				t.Errorf("while a worker runs it: got %+v", x)
			}
			running = true
			return n, nil
		})
		w := must(dispatch.NewWorker(deployed, h.Provider, &dispatch.WorkerOptions{BuildID: "deployed"}))
		for !running {
			time.Sleep(time.Minute)
			if records := h.receive(h.Provider.Config().WorkQueues["default"]); len(records) > 0 {
				w.HandleRecords(ctx, records)
			}
		}
	})
}
