package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// A reconciliation is cancelled at one of its calls. The calls of the next reconciliation are throttled for an hour.
// The next reconciliation waits for the end of the throttling, and loses no instance.
func TestReconcile_diesAndIsThrottledForAnHour_losesNoInstance(t *testing.T) {
	t.Parallel()
	for _, crashes := range []int64{1, 40, 111, 160} {
		t.Run(fmt.Sprint(crashes), func(t *testing.T) {
			t.Parallel()
			lose(t, uint64(crashes), 2, time.Hour, func(h *lost) {
				h.begin("new-")
				before, settled := h.there()
				crashing, stop := context.WithCancel(h.ctx)
				var calls atomic.Int64
				crash := simaws.Interceptor(func(ctx context.Context, _ simaws.Call, next func() error) error {
					if calls.Add(1) == crashes {
						stop()
					}
					if ctx.Err() != nil {
						return ctx.Err()
					}
					return next()
				})
				h.fault.Store(&crash)
				so, err := h.Reconcile(crashing, admin.ReconcileOptions{Concurrency: 1})
				if !errors.Is(err, context.Canceled) {
					t.Fatalf("Reconcile returned %+v, %v after %d calls; want context.Canceled", so, err, calls.Load())
				}
				until := time.Now().Add(time.Hour)
				throttled := simaws.Interceptor(func(_ context.Context, _ simaws.Call, next func() error) error {
					if time.Now().Before(until) {
						return simaws.Throttled()
					}
					return next()
				})
				h.fault.Store(&throttled)
				if so, err := h.Reconcile(h.ctx, admin.ReconcileOptions{Cursor: so.Cursor}); err != nil ||
					so.Failed > 0 {
					t.Fatalf("got %+v, error %v", so, err)
				}
				h.fault.Store(nil)
				h.finish(before)
				h.check(before, settled)
			})
		})
	}
}

// The last work items of a turn are throttled for half an hour, or half of all calls fail for an hour. Each attempt
// continues where the previous attempt stopped. If two operators reconcile concurrently, the second operator does not
// discard the progress of the first.
func TestReconcile_throttledOrFailingCalls_doNotMultiplyWorkItems(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		activities, operators int
		chance                bool
	}{
		"the last are throttled":                    {2500, 1, false},
		"half of all calls fail":                    {2500, 1, true},
		"the last are throttled, two operators":     {2500, 2, false},
		"half of all calls fail, two operators":     {2500, 2, true},
		"the last are throttled, a small turn, two": {60, 2, false},
		"half of all calls fail, a small turn, two": {60, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onHub(t, simhub.Options{}, nil, func(h *lost) {
				if _, err := h.Start(h.ctx, "fan", c.activities, client.WithInstanceID("i")); err != nil {
					t.Fatal(err)
				}
				h.ServeFor(h.ctx, time.Second)
				h.Close()
				time.Sleep(20 * time.Minute)
				h.emptied()

				sent := h.failSends(c.chance, int64(c.activities*4/5))
				var operators sync.WaitGroup
				for i := range c.operators {
					operators.Go(func() {
						time.Sleep(time.Duration(i) * 700 * time.Millisecond)
						if _, err := h.Reconcile(h.ctx, admin.ReconcileOptions{}); err != nil {
							t.Error(err)
						}
					})
				}
				operators.Wait()
				h.fault.Store(nil)

				total, most := 0, 0
				for _, n := range sent {
					total += n
					most = max(most, n)
				}
				t.Logf("%d activities, %d operators: sent %d work items, at most %d per activity", c.activities,
					c.operators, total, most)
				// While calls fail, two operators can repeat sends of each other: in one of a hundred runs, an activity
				// is sent five times. If each attempt started again, it would be sent thirteen times or more.
				limit := 2 * c.operators
				if c.chance && c.operators > 1 {
					limit *= 2
				}
				if most > limit {
					t.Errorf("sent %d work items for one activity; want at most %d", most, limit)
				}
			})
		})
	}
}

// failSends throttles half of all calls for an hour if chance is set. Otherwise failSends throttles work items whose
// activity ID is greater than behind, for half an hour. sent counts the sent work items of each activity.
func (h *lost) failSends(chance bool, behind int64) (sent map[int64]int) {
	var mu sync.Mutex
	sent = map[int64]int{}
	began := time.Now()
	fault := simaws.Interceptor(func(_ context.Context, c simaws.Call, next func() error) error {
		mu.Lock()
		defer mu.Unlock()
		if chance && time.Since(began) < time.Hour && h.seed.IntN(2) == 0 {
			return simaws.Throttled()
		}
		in, ok := c.Input.(*sqs.SendMessageBatchInput)
		if !ok || !strings.Contains(*in.QueueUrl, "default") {
			return next()
		}

		var ids []int64
		for _, e := range in.Entries {
			var w provider.WorkItem
			if err := json.Unmarshal([]byte(*e.MessageBody), &w); err != nil {
				h.t.Error(err)
			}
			if !chance && w.ActivityID > behind && time.Since(began) < 30*time.Minute {
				return simaws.Throttled()
			}
			ids = append(ids, w.ActivityID)
		}
		err := next()
		if err == nil {
			for _, id := range ids {
				sent[id]++
			}
		}
		return err
	})
	h.fault.Store(&fault)
	return sent
}
