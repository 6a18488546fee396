package admin_test

import (
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simhub"
)

// A long reconciliation of a running hub has read a parent for one of its children. Then the parent continues as new.
// The next execution starts a child with the ID of a purged child, whose reconciliation was postponed. The new child
// belongs to the current execution, so the reconciliation must not cancel the new child based on the earlier read.
func TestReconcile_parentStartsNewChildMeanwhile_childIsNotCancelled(t *testing.T) {
	t.Parallel()
	fill := func(_ *lost, r *perdure.Registry) {
		perdure.AddOrchestration(r, "keeps", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
			if n == 0 {
				_ = perdure.CallSubOrchestrationByName[int](ctx, "forever", 0, perdure.WithInstanceID("other-kid"))
			}
			_ = perdure.CallSubOrchestrationByName[int](ctx, "forever", 0, perdure.WithInstanceID("slow-kid"))
			if _, err := perdure.WaitForExternalEvent[int](ctx, "next").Await(ctx); err != nil {
				return 0, err
			}
			return perdure.ContinueAsNew[int](ctx, n+1)
		})
	}
	onHub(t, simhub.Options{BatchSize: 1}, fill, func(h *lost) {
		if _, err := h.Start(h.ctx, "keeps", 0, client.WithInstanceID("i")); err != nil {
			t.Fatal(err)
		}
		h.ServeFor(h.ctx, time.Minute)
		h.throttleSlow(time.Now().Add(20 * time.Minute))
		reconciled := make(chan error)
		go func() {
			_, err := h.Reconcile(h.ctx, admin.ReconcileOptions{})
			reconciled <- err
		}()
		h.ServeFor(h.ctx, 5*time.Minute)
		fault := h.fault.Swap(nil)
		if err := h.Purge(h.ctx, "slow-kid", client.Force()); err != nil {
			t.Fatal(err)
		}
		if err := h.RaiseEvent(h.ctx, "i", "next", 1); err != nil {
			t.Fatal(err)
		}
		h.ServeFor(h.ctx, time.Second)
		h.fault.Store(fault)
		h.ServeFor(h.ctx, time.Hour)
		if err := <-reconciled; err != nil {
			t.Fatal(err)
		}
		h.fault.Store(nil)
		h.ServeFor(h.ctx, time.Minute)
		h.wantStatus("i", client.StatusRunning)
		h.wantStatus("other-kid", client.StatusCancelled) // the parent has abandoned other-kid
		h.wantStatus("slow-kid", client.StatusRunning)
	})
}
