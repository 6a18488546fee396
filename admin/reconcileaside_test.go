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

// many starts instances that wait for an event, of which those with these numbers are slow-<number>.
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
		time.Sleep(time.Millisecond) // lists are by the time of starts
	}
}

// throttleSlow throttles what reads the items of slow instances, until a time.
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

// One instance of each page of 500 fails. The others are done at once; what fails is tried again for an hour in all,
// and is named.
func TestAnInstanceThatFailsHoldsUpNoOther(t *testing.T) {
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
		t.Logf("the others are done after %v, all of it after %v", othersDone, took)
		if err == nil || so.Failed != 3 || so.Active != 1097 || so.Deferred != 0 ||
			!slices.Equal(so.RemainingInstances, []string{"slow-1050", "slow-3", "slow-600"}) {
			t.Errorf("%+v, %v", so, err)
		}
		if othersDone > time.Minute || took > 70*time.Minute {
			t.Errorf("the others are done after %v, and all of it after %v; want a minute, and 70", othersDone, took)
		}
		if len(pages) != 3 || pages[2].Deferred != 3 || pages[1].Deferred != 2 {
			t.Errorf("of the progress it says %+v", pages)
		}

		h.fault.Store(nil)
		again, err := h.Reconcile(h.ctx, admin.ReconcileOptions{Instances: so.RemainingInstances})
		if err != nil || again.Active != 3 || again.Instances != 3 {
			t.Errorf("of those that were left: %+v, %v", again, err)
		}
	})
}

// What fails for half an hour is done at the end, and nothing is left.
func TestAnInstanceThatFailsForAWhileIsDoneAtTheEnd(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{}, nil, func(h *lost) {
		h.many(20, 3, 7)
		began := time.Now()
		h.throttleSlow(began.Add(30 * time.Minute))
		so, err := h.Reconcile(h.ctx, admin.ReconcileOptions{})
		if took := time.Since(began); err != nil || so.Active != 20 || so.Failed != 0 ||
			len(so.RemainingInstances) > 0 || took > 32*time.Minute {
			t.Errorf("after %v: %+v, %v", took, so, err)
		}
	})
}

// diesAtThePage reconciles until a page is done, and returns what was reported then.
func (h *lost) diesAtThePage(n int) (last admin.ReconcileResult) {
	h.t.Helper()
	dying, die := context.WithCancel(h.ctx)
	defer die()
	pages := 0
	_, err := h.Reconcile(dying, admin.ReconcileOptions{OnProgress: func(so admin.ReconcileResult) {
		if pages++; pages == n {
			last = so
			die()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		h.t.Fatalf("%+v, %v", last, err)
	}
	h.fault.Store(nil)
	return last
}

// A process dies after the third page, and an instance of the second is set aside, or of the first. The cursor names
// it, so that it is not lost, and leads on: a hub has a million instances, of which one may fail from the first page
// on, and nobody is to do all of them again for it.
func TestACursorNamesWhatIsSetAside(t *testing.T) {
	t.Parallel()
	for name, slow := range map[string]int{"of the second page": 1000, "of the first page": 1599} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onHub(t, simhub.Options{}, nil, func(h *lost) {
				h.many(1600, slow)
				h.throttleSlow(time.Now().Add(1000 * time.Hour))
				last := h.diesAtThePage(3)
				if last.Deferred != 1 {
					t.Fatalf("%+v", last)
				}
				so, err := h.Reconcile(h.ctx, admin.ReconcileOptions{Cursor: last.Cursor})
				if err != nil || so.Failed != 0 || so.Active != 101 || so.Cursor != "" {
					t.Errorf("from the cursor on it reconciles %d, %v; want the 100 of the last page, and the one "+
						"that was set aside", so.Active, err)
				}
			})
		})
	}
}

// More are set aside than a cursor names: it leads back to the first page that has others.
func TestACursorLeadsBackToWhatItDoesNotName(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{}, nil, func(h *lost) {
		slow := []int{1599, 1598}
		for i := range 25 {
			slow = append(slow, 1000+i)
		}
		h.many(1600, slow...)
		h.throttleSlow(time.Now().Add(1000 * time.Hour))
		last := h.diesAtThePage(3)
		so, err := h.Reconcile(h.ctx, admin.ReconcileOptions{Cursor: last.Cursor})
		if err != nil || so.Active != 1102 {
			t.Errorf("from the cursor on it reconciles %d, %v; want 1102: the second page and all behind, and two "+
				"of the first", so.Active, err)
		}
	})
}

// What a cursor names is not done either when the next call dies: its cursor names it again.
func TestWhatACursorNamesStaysNamedUntilItIsDone(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{}, nil, func(h *lost) {
		h.many(1600, 1599)
		h.throttleSlow(time.Now().Add(1000 * time.Hour))
		last := h.diesAtThePage(2)
		h.throttleSlow(time.Now().Add(1000 * time.Hour))
		at := last.Cursor
		dying, die := context.WithCancel(h.ctx)
		defer die()
		so, err := h.Reconcile(dying, admin.ReconcileOptions{Cursor: at, OnProgress: func(so admin.ReconcileResult) {
			if at = so.Cursor; so.Instances == 600 {
				die() // all pages are done
			}
		}})
		if !errors.Is(err, context.Canceled) || so.Cursor != at || so.Instances != 600 {
			t.Fatalf("%+v, %v", so, err)
		}
		h.fault.Store(nil)
		if so, err := h.Reconcile(h.ctx, admin.ReconcileOptions{Cursor: at}); err != nil || so.Active != 1 ||
			so.Instances != 1 {
			t.Errorf("all pages are done but for one instance, and it reconciles %+v, %v", so, err)
		}
	})
}

// refusing is a provider that cannot reconcile any instance until it is well.
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

// All fails that is about instances, and lists do not: it stops when that has lasted for an hour, and goes on when all
// is well.
func TestAReconciliationOfWhichAllFailsStops(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{}, nil, func(h *lost) {
		h.many(1100)
		hub := &refusing{Provider: h.Provider}
		c := admin.New(hub)
		began := time.Now()
		so, err := c.Reconcile(h.ctx, admin.ReconcileOptions{})
		if took := time.Since(began); err == nil || !strings.Contains(err.Error(), "more than 500 instances failed") ||
			took > 70*time.Minute || len(so.RemainingInstances) != 1000 || so.Instances != 0 {
			t.Errorf("after %v: %d of %d, %v", took, len(so.RemainingInstances), so.Instances, err)
		}
		hub.well.Store(true)
		if so, err := c.Reconcile(h.ctx, admin.ReconcileOptions{Cursor: so.Cursor}); err != nil || so.Active != 1100 {
			t.Errorf("%+v, %v", so, err)
		}
	})
}

// What is not there any more is not counted as living.
func TestAnInstanceThatIsGoneIsCountedAsGone(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{}, nil, func(h *lost) {
		h.many(1)
		so, err := h.Reconcile(h.ctx, admin.ReconcileOptions{Instances: []string{"i-0", "nobody"}})
		if err != nil || so.NotFound != 1 || so.Active != 1 || so.Instances != 2 {
			t.Errorf("%+v, %v", so, err)
		}
	})
}
