package dispatch_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/schedule"
)

// A deleted schedule is created again. Its instance ends between the client's read and its message, which is lost. The
// call then creates the schedule again. If the message arrives before the end, the schedule continues.
func TestPutSchedule_duringDeletion_isNotLost(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]time.Duration{"before its end": 0, "at its end": 2 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := registry()
			schedule.Register(r)
			perdure.AddOrchestration(r, "report", func(*perdure.OrchestrationContext, int) (int, error) {
				return 0, nil
			})
			s := schedule.Schedule{ID: "s", Orchestration: "report", Expression: "rate(1 hours)", Input: []byte("1")}
			inBubble(t, simhub.Options{Registry: r}, func(ctx context.Context, h *hub) {
				c := client.New(h.Provider)
				if err := c.Schedules().Put(ctx, s); err != nil {
					t.Fatal(err)
				}
				h.serveFor(time.Minute)
				if err := c.Schedules().Delete(ctx, "s"); err != nil {
					t.Fatal(err)
				}
				h.serveFor(30 * time.Second)

				served := make(chan struct{})
				go func() { defer close(served); h.serveFor(90 * time.Minute) }()
				var held atomic.Bool
				h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
					if c.Service == "SQS" && strings.HasPrefix(c.Operation, "SendMessage") &&
						held.CompareAndSwap(false, true) {
						time.Sleep(late)
					}
					return next()
				})
				if err := c.Schedules().Put(ctx, s); err != nil {
					t.Error(err)
				}
				<-served
				if got, err := c.Schedules().Get(ctx, "s"); err != nil || got.RuntimeStatus != client.StatusRunning ||
					got.Started != 1 || got.Deleting {
					t.Errorf("got schedule %+v, error %v, want Running", got, err)
				}
			})
		})
	}
}
