package admin_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// hangSlow blocks all calls that read the items of slow instances, until the given time.
func (h *lost) hangSlow(until time.Time) {
	fault := simaws.Interceptor(func(ctx context.Context, c simaws.Call, next func() error) error {
		if in, ok := c.Input.(*dynamodb.GetItemInput); ok &&
			strings.HasPrefix(in.Key["pk"].(*types.AttributeValueMemberS).Value, "i#slow-") &&
			time.Now().Before(until) {
			<-ctx.Done()
			return ctx.Err()
		}
		return next()
	})
	h.fault.Store(&fault)
}

// A call receives no response. After two minutes, Reconcile cancels the call and continues with other instances.
// Reconcile processes the postponed instance when calls succeed again.
func TestReconcile_callHangs_isCancelledAndRetriedLater(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{}, nil, func(h *lost) {
		h.many(1100, 3, 1050)
		began := time.Now()
		h.hangSlow(began.Add(20 * time.Minute))
		var othersDone time.Duration
		so, err := h.Reconcile(h.ctx, admin.ReconcileOptions{Concurrency: 1, OnProgress: func(admin.ReconcileResult) {
			othersDone = time.Since(began)
		}})
		if err != nil || so.Active != 1100 || so.Failed > 0 {
			t.Errorf("got %+v, error %v", so, err)
		}
		if took := time.Since(began); othersDone > 10*time.Minute || took > time.Hour {
			t.Errorf("the other instances took %v, all took %v; want at most 10 minutes and 1 hour", othersDone, took)
		}
	})
}

func TestReconcile_listCallHangs_isRetried(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{}, nil, func(h *lost) {
		h.many(3)
		until := time.Now().Add(5 * time.Minute)
		fault := simaws.Interceptor(func(ctx context.Context, c simaws.Call, next func() error) error {
			if in, ok := c.Input.(*dynamodb.QueryInput); ok && in.IndexName != nil && time.Now().Before(until) {
				<-ctx.Done()
				return ctx.Err()
			}
			return next()
		})
		h.fault.Store(&fault)
		if so, err := h.Reconcile(h.ctx, admin.ReconcileOptions{}); err != nil || so.Active != 3 {
			t.Errorf("got %+v, error %v", so, err)
		}
	})
}

// throttled throttles all calls within time windows. Each pair of durations is the start and the end of a window.
func (h *lost) throttled(windows ...time.Duration) {
	began := time.Now()
	fault := simaws.Interceptor(func(_ context.Context, _ simaws.Call, next func() error) error {
		for i := 0; i < len(windows); i += 2 {
			if so := time.Since(began); so >= windows[i] && so < windows[i+1] {
				return simaws.Throttled()
			}
		}
		return next()
	})
	h.fault.Store(&fault)
}

// All calls are throttled for an hour, succeed for a minute, and are throttled for another hour. Each success resets
// the retry budget. Reconcile calls OnStall about once a minute during the throttling.
func TestReconcile_hoursOfThrottling_completesAndReportsStalls(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{}, nil, func(h *lost) {
		h.many(600)
		h.throttled(0, time.Hour, time.Hour+time.Minute, 2*time.Hour+time.Minute)
		second := time.Now().Add(time.Hour + time.Minute)
		var reported []admin.Stall
		pages := 0
		so, err := h.Reconcile(h.ctx, admin.ReconcileOptions{
			OnStall: func(w admin.Stall) { reported = append(reported, w) },
			OnProgress: func(admin.ReconcileResult) {
				if pages++; pages == 1 {
					time.Sleep(time.Until(second))
				}
			},
		})
		if err != nil || so.Active != 600 {
			t.Errorf("got %+v, error %v", so, err)
		}
		if n := len(reported); n < 110 || n > 122 ||
			reported[0].Service != "DynamoDB" || reported[0].Elapsed < time.Minute ||
			reported[0].Elapsed > 2*time.Minute || reported[0].Err == nil {
			t.Errorf("OnStall was called %d times, first with %+v; want 110 to 122 calls", len(reported), reported[0])
		}
	})
}

// PurgeQueues runs while all calls are throttled for an hour, and again for an hour after two of three schedules are
// deleted. PurgeQueues deletes all messages and schedules, and calls OnStall during the throttling.
func TestPurgeQueues_hoursOfThrottling_completesAndReportsStalls(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{}, nil, func(h *lost) {
		for _, id := range []string{"a", "b", "c"} {
			if _, err := h.Start(h.ctx, "far", kinds["far"], client.WithInstanceID(id)); err != nil {
				t.Fatal(err)
			}
		}
		h.ServeFor(h.ctx, 20*time.Minute)
		h.Close()
		time.Sleep(20 * time.Minute)
		if err := h.RaiseEvent(h.ctx, "a", "e", 1); err != nil {
			t.Fatal(err)
		}
		until := time.Now().Add(time.Hour)
		deleted := 0
		fault := simaws.Interceptor(func(_ context.Context, c simaws.Call, next func() error) error {
			switch {
			case time.Now().Before(until):
				return simaws.Throttled()
			case c.Operation == "DeleteSchedule":
				if deleted++; deleted == 2 {
					until = time.Now().Add(time.Hour)
				}
			}
			return next()
		})
		h.fault.Store(&fault)
		services := map[string]int{}
		var so []int
		emptied, err := h.PurgeQueues(h.ctx, admin.OnStall(func(w admin.Stall) { services[w.Service]++ }),
			admin.OnProgress(func(e provider.QueuePurgeResult) { so = append(so, e.Schedules) }))
		h.fault.Store(nil)
		if err != nil || emptied.Schedules != 3 || emptied.Messages["inbox"] != 1 || h.Cloud.Schedules.Count() != 0 {
			t.Errorf("PurgeQueues returned %+v, %v; %d schedules remain", emptied, err, h.Cloud.Schedules.Count())
		}
		if services["SQS"] < 50 || services["Scheduler"]+services["SQS"] < 110 {
			t.Errorf("OnStall was called %v times per service", services)
		}
		if !slices.Equal(so, []int{2, 3}) {
			t.Errorf("OnProgress reported %v schedules; want 2 and 3", so)
		}
		h.wantNoTimers()
	})
}

// A process deletes the schedules and dies, so the next process finds no schedules. One of the schedules has already
// fired. The next process also deletes the message of that schedule.
func TestPurgeQueues_scheduleFiresAndProcessDies_nextCallDeletesItsMessage(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{}, nil, func(h *lost) {
		if _, err := h.Start(h.ctx, "far", kinds["far"], client.WithInstanceID("i")); err != nil {
			t.Fatal(err)
		}
		h.ServeFor(h.ctx, 20*time.Minute)
		h.Close()
		time.Sleep(20 * time.Minute)
		crashing, crash := context.WithCancel(h.ctx)
		defer crash()
		var firing sync.WaitGroup
		fault := simaws.Interceptor(func(_ context.Context, c simaws.Call, next func() error) error {
			err := next()
			if c.Operation == "DeleteSchedule" {
				firing.Go(func() { // the schedule fired before its deletion
					time.Sleep(40 * time.Second)
					_ = h.Provider.HoldTimers(h.ctx, provider.Timer{
						V: 1, InstanceID: "i", ExecutionID: "x", TimerID: 3, FireAt: time.Now(),
					})
				})
				crash()
			}
			return err
		})
		h.fault.Store(&fault)
		if _, err := h.PurgeQueues(crashing); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if _, err := h.PurgeQueues(h.ctx); err != nil {
			t.Fatal(err)
		}
		firing.Wait()
		h.wantNoTimers()
	})
}
