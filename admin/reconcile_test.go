package admin_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/provider"
)

// Interleavings of a way back, each of which a test below has:
//   - an old copy of the table, cut between any two writes, with queues that are empty, and schedules that are gone;
//   - the same with the old queues: what they and the schedules carry is of a history that is gone. An outcome in them
//     would settle whatever has its number by now, and a schedule of the same name would fire at another time;
//   - notes and cursors that say SQS has taken what is in no queue any more;
//   - activities at a later attempt than the first, whose current attempt was in a queue, or in a schedule;
//   - ends whose status was never written, or whose outcome never reached the parent; detached starts of what is over;
//     cancels of children whose parent is over; a child that is being deleted, whose parent waits;
//   - a reconciliation while turns run, two at once, one that dies half way, one whose calls are throttled for an hour.

// cuts is how many moments are tried.
var cuts = flag.Int("cuts", 8, "moments at which a table is cut before it is restored")

// thousand has the table hold a thousand instances, beside their children.
var thousand = flag.Bool("thousand", false, "reconcile a table of a thousand instances")

// An old copy of a table of instances in every state (a thousand with -thousand), beside queues that are new, or that
// were emptied: none is lost, and nothing that is settled runs again.
func TestATableThatIsRestoredIsReconciled(t *testing.T) {
	t.Parallel()
	for name, newQueues := range map[string]string{"new queues": "new-", "the old queues": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each := 8
			if *thousand {
				each = 50
			}
			lose(t, 7, each, 10*time.Second, func(h *lost) {
				h.begin(newQueues)
				if newQueues == "" {
					h.emptied()
				}
				before, settled := h.there()
				h.Cloud.ResetCounts()
				slow := simaws.Interceptor(func(_ context.Context, _ simaws.Call, next func() error) error {
					time.Sleep(10 * time.Millisecond)
					return next()
				})
				h.fault.Store(&slow)
				began := time.Now()
				so, err := h.Reconcile(h.ctx, admin.ReconcileOptions{})
				if err != nil || so.Failed > 0 || so.Cursor != "" {
					t.Fatalf("%+v, %v", so, err)
				}
				h.fault.Store(nil)
				states := map[client.RuntimeStatus]int{}
				for _, in := range before {
					states[in.Status]++
				}
				t.Logf("%d instances (%v): %+v; %v with calls of 10 ms: %v", len(before), states, so, time.Since(began),
					h.Cloud.Counts())
				h.finish(before)
				h.check(before, settled)
			})
		})
	}
}

// The same, cut at many moments.
func TestATableIsReconciledWhereverItWasCut(t *testing.T) {
	t.Parallel()
	for seed := range uint64(*cuts) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			newQueues := []string{"new-", ""}[seed%2]
			lose(t, seed, 2, time.Hour, func(h *lost) {
				h.begin(newQueues)
				if newQueues == "" {
					h.emptied()
				}
				before, settled := h.there()
				if seed%3 == 0 { // while turns run, and twice at once
					var both sync.WaitGroup
					for range 2 {
						both.Go(func() {
							if _, err := h.Reconcile(h.ctx, admin.ReconcileOptions{Concurrency: 3}); err != nil {
								t.Error(err)
							}
						})
					}
					h.ServeFor(h.ctx, time.Second)
					both.Wait()
				} else if _, err := h.Reconcile(h.ctx, admin.ReconcileOptions{}); err != nil {
					t.Fatal(err)
				}
				h.finish(before)
				h.check(before, settled)
			})
		})
	}
}

// What is a field of the caller's is said so.
func TestAReconciliationIsChecked(t *testing.T) {
	t.Parallel()
	withLetters(t, 1, func(ctx context.Context, h *lettered) {
		for field, r := range map[string]admin.ReconcileOptions{
			"lookback": {Lookback: 29 * 24 * time.Hour}, "concurrency": {Concurrency: 1000},
			"cursor": {Cursor: "nonsense"},
		} {
			if _, err := h.Reconcile(ctx, r); !hasField(err, field) {
				t.Errorf("%s: %v", field, err)
			}
		}
	})
}

func hasField(err error, field string) bool {
	f, ok := errors.AsType[*provider.FieldError](err)
	return ok && f.Field == field
}
