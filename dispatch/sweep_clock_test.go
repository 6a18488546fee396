package dispatch_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// sweepWithClockOff runs a sweep of a renewer whose clock differs by the given duration.
func (h *hub) sweepWithClockOff(by time.Duration) {
	h.t.Helper()
	clock := func() time.Time { return time.Now().Add(by) }
	p, err := dynamo.New(h.Provider.Config(), dynamo.Clients{
		Table: h.Cloud.Table, Queues: h.Cloud.Queues,
		Schedules: h.Cloud.Schedules,
	}, dynamo.WithClock(clock))
	if err != nil {
		h.t.Fatal(err)
	}
	k := must(dispatch.NewRenewer(p, &dispatch.RenewerOptions{Clock: clock}))
	if _, err := k.Sweep(h.t.Context()); err != nil {
		h.t.Error(err)
	}
}

// Interleaving: one sweep runs in a process whose clock is days ahead. Instances that are started in those days, and
// lose their wakes, are still found.
func TestR11_sweepWithClockAhead_skipsNoInstance(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		for n := range 100 { // some in each shard
			h.startPending(ctx, fmt.Sprint("before-", n))
		}
		time.Sleep(3 * time.Minute)
		h.watch()
		h.sweepWithClockOff(10 * days)
		for day := range 4 {
			for n := range 40 {
				h.startPending(ctx, fmt.Sprint("i-", day, "-", n))
			}
			time.Sleep(days)
			h.watch()
		}
		h.serveFor(time.Hour)
		for day := range 4 {
			for n := range 40 {
				id := fmt.Sprint("i-", day, "-", n)
				if in := h.read(provider.Instance{InstanceID: id}); in.Status == provider.StatusPending {
					t.Fatalf("%s is still pending", id)
				}
			}
		}
	})
}

// Interleaving: a sweep with a clock that is ahead also processes due deletions and blocked instances.
func TestR21_sweepWithClockAhead_delaysNoDeletion(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Retention: 10 * days}, func(ctx context.Context, h *hub) {
		h.sweepWithClockOff(300 * days)
		h.begin("a", "nothing", 1)
		h.serveFor(time.Hour)
		time.Sleep(12 * days)
		h.watch()
		h.wantNone("a")
		h.putBlocked(ctx, 3)
		h.orchestrator(registry(), "fixed")
		h.sweepWithClockOff(300 * days)
		h.wantWoken(3, "after a sweep with the clock ahead")
	})
}
