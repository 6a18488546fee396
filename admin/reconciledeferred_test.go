package admin_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// many starts n instances that wait for an event. The instances with the numbers in slow have the ID slow-<number>.
func (h *lost) many(n int, slow ...int) {
	h.t.Helper()
	for i := range n {
		id := fmt.Sprintf("i-%d", i)
		if slices.Contains(slow, i) {
			id = fmt.Sprintf("slow-%d", i)
		}
		if _, err := h.Start(h.ctx, "event", 0, client.WithInstanceID(id)); err != nil {
			h.t.Fatal(err)
		}
		time.Sleep(time.Millisecond) // lists are sorted by start time
	}
}

// throttleSlow throttles reads of the items of slow instances until the given time.
func (h *lost) throttleSlow(until time.Time) {
	fault := simaws.Interceptor(func(_ context.Context, c simaws.Call, next func() error) error {
		if in, ok := c.Input.(*dynamodb.GetItemInput); ok &&
			strings.HasPrefix(in.Key["pk"].(*types.AttributeValueMemberS).Value, "i#slow-") &&
			time.Now().Before(until) {
			return simaws.Throttled()
		}
		return next()
	})
	h.fault.Store(&fault)
}

// One instance of each page of 500 fails. Reconcile finishes the other instances without delay.
// Reconcile retries the failing instances for an hour in total, and returns their IDs.
func TestReconcile_instanceKeepsFailing_othersFinishWithoutDelay(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{}, nil, func(h *lost) {
		slow := []int{3, 600, 1050}
		h.many(1100, slow...)
		h.throttleSlow(time.Now().Add(1000 * time.Hour))
		began := time.Now()
		var pages []admin.ReconcileResult
		var othersDone time.Duration
		so, err := h.Reconcile(h.ctx, admin.ReconcileOptions{OnProgress: func(so admin.ReconcileResult) {
			pages = append(pages, so)
			othersDone = time.Since(began)
		}})
		took := time.Since(began)
		t.Logf("Reconcile finished the other instances after %v, and returned after %v", othersDone, took)
		if err == nil || so.Failed != 3 || so.Active != 1097 || so.Deferred != 0 ||
			!slices.Equal(so.RemainingInstances, []string{"slow-1050", "slow-3", "slow-600"}) {
			t.Errorf("the result is %+v, error %v; want the three slow instances to fail", so, err)
		}
		if othersDone > time.Minute || took > 70*time.Minute {
			t.Errorf("Reconcile finished the other instances after %v, and returned after %v; want 1 and 70 minutes",
				othersDone, took)
		}
		if len(pages) != 3 || pages[2].Deferred != 3 || pages[1].Deferred != 2 {
			t.Errorf("Reconcile reports the progress %+v; want 3 pages, with 2 and then 3 deferred instances", pages)
		}

		h.fault.Store(nil)
		again, err := h.Reconcile(h.ctx, admin.ReconcileOptions{Instances: so.RemainingInstances})
		if err != nil || again.Active != 3 || again.Instances != 3 {
			t.Errorf("the reconciliation of the remaining instances: got %+v, error %v", again, err)
		}
	})
}

// If an instance fails for half an hour, Reconcile finishes the instance at the end, and no instance remains.
func TestReconcile_instanceFailsForHalfAnHour_isReconciledAtTheEnd(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{}, nil, func(h *lost) {
		h.many(20, 3, 7)
		began := time.Now()
		h.throttleSlow(began.Add(30 * time.Minute))
		so, err := h.Reconcile(h.ctx, admin.ReconcileOptions{})
		if took := time.Since(began); err != nil || so.Active != 20 || so.Failed != 0 ||
			len(so.RemainingInstances) > 0 || took > 32*time.Minute {
			t.Errorf("reconciliation: took %v, got %+v, error %v", took, so, err)
		}
	})
}

// crashAtPage starts a reconciliation and cancels it after page n.
// crashAtPage returns the progress that the reconciliation reported for that page.
func (h *lost) crashAtPage(n int) (last admin.ReconcileResult) {
	h.t.Helper()
	ctx, cancel := context.WithCancel(h.ctx)
	defer cancel()
	pages := 0
	_, err := h.Reconcile(ctx, admin.ReconcileOptions{OnProgress: func(so admin.ReconcileResult) {
		if pages++; pages == n {
			last = so
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		h.t.Fatalf("the last progress is %+v, error %v; want context.Canceled", last, err)
	}
	h.fault.Store(nil)
	return last
}

// A process crashes after the third page, when an instance of the first or the second page is deferred.
// The cursor names the deferred instance, so that the instance is not lost, and continues after the third page.
// A hub may have a million instances, and one failing instance must not cause a second reconciliation of all.
func TestReconcileCursor_deferredInstance_isNamed(t *testing.T) {
	t.Parallel()
	for name, slow := range map[string]int{"of the second page": 1000, "of the first page": 1599} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onHub(t, simhub.Options{}, nil, func(h *lost) {
				h.many(1600, slow)
				h.throttleSlow(time.Now().Add(1000 * time.Hour))
				last := h.crashAtPage(3)
				if last.Deferred != 1 {
					t.Fatalf("the last progress is %+v; want one deferred instance", last)
				}
				so, err := h.Reconcile(h.ctx, admin.ReconcileOptions{Cursor: last.Cursor})
				if err != nil || so.Failed != 0 || so.Active != 101 || so.Cursor != "" {
					t.Errorf("the reconciliation from the cursor has %d instances, error %v; want the 100 of the last "+
						"page and the deferred one", so.Active, err)
				}
			})
		})
	}
}

// If more instances are deferred than a cursor can name, the cursor refers to the first page with an unnamed one.
func TestReconcileCursor_tooManyDeferredInstances_refersToFirstUnnamedPage(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{}, nil, func(h *lost) {
		slow := []int{1599, 1598}
		for i := range 25 {
			slow = append(slow, 1000+i)
		}
		h.many(1600, slow...)
		h.throttleSlow(time.Now().Add(1000 * time.Hour))
		last := h.crashAtPage(3)
		so, err := h.Reconcile(h.ctx, admin.ReconcileOptions{Cursor: last.Cursor})
		if err != nil || so.Active != 1102 {
			t.Errorf("the reconciliation from the cursor has %d instances, error %v; want 1102: all from the second "+
				"page on, and two of the first page", so.Active, err)
		}
	})
}

// A cursor names a deferred instance, and the next call crashes before that call reconciles the instance.
// The cursor of the next call names the instance again.
func TestReconcileCursor_nextCallDies_stillNamesDeferredInstance(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{}, nil, func(h *lost) {
		h.many(1600, 1599)
		h.throttleSlow(time.Now().Add(1000 * time.Hour))
		last := h.crashAtPage(2)
		h.throttleSlow(time.Now().Add(1000 * time.Hour))
		at := last.Cursor
		ctx, cancel := context.WithCancel(h.ctx)
		defer cancel()
		so, err := h.Reconcile(ctx, admin.ReconcileOptions{Cursor: at, OnProgress: func(so admin.ReconcileResult) {
			if at = so.Cursor; so.Instances == 600 {
				cancel() // the reconciliation has finished all pages
			}
		}})
		if !errors.Is(err, context.Canceled) || so.Cursor != at || so.Instances != 600 {
			t.Fatalf("the result is %+v, error %v; want the last reported cursor and 600 instances", so, err)
		}
		h.fault.Store(nil)
		if so, err := h.Reconcile(h.ctx, admin.ReconcileOptions{Cursor: at}); err != nil || so.Active != 1 ||
			so.Instances != 1 {
			t.Errorf("one instance remains after all pages, and the reconciliation returns %+v, %v", so, err)
		}
	})
}

// refusing is a provider that cannot reconcile any instance until well is true.
type refusing struct {
	*dynamo.Provider

	well atomic.Bool
}

func (r *refusing) ReconcileInstance(
	ctx context.Context, instanceID string, how provider.ReconcileOptions,
) (provider.ReconcileResult, error) {
	if r.well.Load() {
		return r.Provider.ReconcileInstance(ctx, instanceID, how)
	}
	return provider.ReconcileResult{}, &provider.Error{
		Op: "DynamoDB.GetItem", InstanceID: instanceID, Retryable: true, Err: errors.New("throttled"),
	}
}

// All calls for single instances fail, but lists succeed. Reconcile stops after an hour of these failures.
// The next reconciliation continues from the cursor when the calls succeed again.
func TestReconcile_allInstancesFail_stopsAfterAnHour(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{}, nil, func(h *lost) {
		h.many(1100)
		hub := &refusing{Provider: h.Provider}
		c := admin.New(hub)
		began := time.Now()
		so, err := c.Reconcile(h.ctx, admin.ReconcileOptions{})
		if took := time.Since(began); err == nil || !strings.Contains(err.Error(), "more than 500 instances failed") ||
			took > 70*time.Minute || len(so.RemainingInstances) != 1000 || so.Instances != 0 {
			t.Errorf("after %v: %d instances remain, %d were reconciled, error %v",
				took, len(so.RemainingInstances), so.Instances, err)
		}
		hub.well.Store(true)
		if so, err := c.Reconcile(h.ctx, admin.ReconcileOptions{Cursor: so.Cursor}); err != nil || so.Active != 1100 {
			t.Errorf("the result from the cursor is %+v, error %v; want 1100 active instances", so, err)
		}
	})
}

// Reconcile counts an instance that does not exist as not found, and not as active.
func TestReconcile_missingInstance_isCountedAsNotFound(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{}, nil, func(h *lost) {
		h.many(1)
		so, err := h.Reconcile(h.ctx, admin.ReconcileOptions{Instances: []string{"i-0", "missing"}})
		if err != nil || so.NotFound != 1 || so.Active != 1 || so.Instances != 2 {
			t.Errorf("the result is %+v, error %v; want one active instance and one not found", so, err)
		}
	})
}
