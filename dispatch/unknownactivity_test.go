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

// pending is the one thing that an instance waits for.
func (h *hub) pending(id string) client.PendingItem {
	h.t.Helper()
	p, err := client.New(h.Provider).Pending(h.t.Context(), id, "", 0)
	if err != nil || p.Total != 1 || len(p.Items) != 1 {
		h.t.Fatalf("pending: %+v, %v", p, err)
	}
	return p.Items[0]
}

// A worker of the build before receives an activity of the new one: status says so, until one that has it has begun it.
func TestStatusSaysThatNoWorkerKnowsAnActivity(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "new", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		return perdure.CallActivityByName[int](ctx, "added", 1).Await(ctx)
	})
	inBubble(t, simhub.Options{Registry: r}, func(ctx context.Context, h *hub) {
		in := h.start("new", 0)
		h.turn(0)
		if x := h.pending(in.InstanceID); x.Name != "added" || !x.UnregisteredAt.IsZero() {
			t.Errorf("sent: %+v", x)
		}
		began := time.Now()
		h.serveFor(10 * time.Minute)
		x := h.pending(in.InstanceID)
		if told := x.UnregisteredAt.Sub(began); told <= 0 || told > 10*time.Minute || x.UnregisteredBuildID != "test" {
			t.Errorf("after ten minutes: unknown since %v to build %q", told, x.UnregisteredBuildID)
		}
		if age := time.Since(x.UnregisteredAt); age > 6*time.Minute {
			t.Errorf("what no worker knows was told %v ago last", age)
		}

		deployed, running := perdure.NewRegistry(), false
		perdure.AddActivity(deployed, "added", func(ctx context.Context, n int) (int, error) {
			if x := h.pending(in.InstanceID); !x.UnregisteredAt.IsZero() {
				t.Errorf("while a worker runs it: %+v", x)
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
