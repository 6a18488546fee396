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

// wrongLook is a look of a renewer whose clock is wrong.
func (h *hub) wrongLook(by time.Duration) {
	h.t.Helper()
	clock := func() time.Time { return time.Now().Add(by) }
	p, err := dynamo.New(h.Provider.Config(), dynamo.Clients{Table: h.Cloud.Table, Queues: h.Cloud.Queues, Schedules: h.Cloud.Schedules}, dynamo.WithClock(clock))
	if err != nil {
		h.t.Fatal(err)
	}
	k := must(dispatch.NewRenewer(p, &dispatch.RenewerOptions{Clock: clock}))
	if _, err := k.Sweep(h.t.Context()); err != nil {
		h.t.Error(err)
	}
}

// Interleaving: one look is made by a process whose clock is days ahead. What is started in those days, and loses its wake, is found all the same.
func TestR11AClockThatWasAheadHidesNothingFromTheWatch(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		for n := range 100 { // some in each shard
			h.startPending(ctx, fmt.Sprint("before-", n))
		}
		time.Sleep(3 * time.Minute)
		h.watch()
		h.wrongLook(10 * days)
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
					t.Fatalf("%s is pending for ever", id)
				}
			}
		}
	})
}

// Interleaving: so was one look at what is due, and at what is blocked.
func TestR21AClockThatWasAheadKeepsNothingForLonger(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Retention: 10 * days}, func(ctx context.Context, h *hub) {
		h.wrongLook(300 * days)
		h.begin("a", "nothing", 1)
		h.serveFor(time.Hour)
		time.Sleep(12 * days)
		h.watch()
		h.wantNone("a")
		h.putBlocked(ctx, 3)
		h.orchestrator(registry(), "mended")
		h.wrongLook(300 * days)
		h.wantWoken(3, "after a look from the future")
	})
}
