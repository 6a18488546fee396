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

// The tests of reconciliation cover these interleavings of a recovery:
//   - The table is an old copy, cut between any two writes. The queues are empty, and the schedules are deleted.
//   - The table is an old copy, and the queues and schedules of the lost history still exist. An outcome in a queue
//     would settle another task with the same ID. A schedule with the same name would fire at the wrong time.
//   - Notes and cursors record that SQS accepted messages, but no queue has these messages anymore.
//   - An activity is at a later attempt than the first, and its current attempt was in a queue or in a schedule.
//   - An instance has ended, but its status was never written or its outcome never reached the parent.
//   - An instance that has ended has detached starts.
//   - A parent has ended, and its children must be cancelled.
//   - A purge is deleting a child while the parent waits for the child.
//   - A reconciliation runs while turns run, or two reconciliations run at the same time.
//   - A reconciliation crashes halfway, or its calls are throttled for an hour.

// cuts is the number of moments at which the tests cut the table.
var cuts = flag.Int("cuts", 8, "moments at which a table is cut before it is restored")

// thousand makes the test use a table with a thousand instances, not counting their children.
var thousand = flag.Bool("thousand", false, "reconcile a table of a thousand instances")

// The test reconciles an old copy of a table with new queues, or with purged queues. The table has instances in every
// status, and a thousand of them with -thousand. No instance is lost, and no settled activity runs again.
func TestReconcile_restoredTable_losesNoInstanceAndRepeatsNoSettledActivity(t *testing.T) {
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
					t.Fatalf("got %+v, error %v", so, err)
				}
				h.fault.Store(nil)
				states := map[client.RuntimeStatus]int{}
				for _, in := range before {
					states[in.Status]++
				}
				t.Logf("%d instances (%v): %+v; took %v with calls of 10 ms; calls: %v", len(before), states, so,
					time.Since(began), h.Cloud.Counts())
				h.finish(before)
				h.check(before, settled)
			})
		})
	}
}

func TestReconcile_tableCutAtAnyMoment_losesNoInstanceAndRepeatsNoSettledActivity(t *testing.T) {
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
				if seed%3 == 0 { // two reconciliations run while turns run
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

// Reconcile returns a FieldError that names the invalid option.
func TestReconcile_invalidOption_returnsFieldError(t *testing.T) {
	t.Parallel()
	withLetters(t, 1, func(ctx context.Context, h *deadLetterHub) {
		for field, r := range map[string]admin.ReconcileOptions{
			"lookback": {Lookback: 29 * 24 * time.Hour}, "concurrency": {Concurrency: 1000},
			"cursor": {Cursor: "nonsense"},
		} {
			if _, err := h.Reconcile(ctx, r); !hasField(err, field) {
				t.Errorf("Reconcile with an invalid %s returns the error %v; want a FieldError", field, err)
			}
		}
	})
}

func hasField(err error, field string) bool {
	f, ok := errors.AsType[*provider.FieldError](err)
	return ok && f.Field == field
}
