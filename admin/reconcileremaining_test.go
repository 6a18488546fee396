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
	"github.com/aws/smithy-go"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
)

// readsInstance reports whether the call c reads the item of an instance.
func readsInstance(c simaws.Call) bool {
	in, ok := c.Input.(*dynamodb.GetItemInput)
	return ok && strings.HasPrefix(in.Key["pk"].(*types.AttributeValueMemberS).Value, "i#")
}

// The operator's session expires in the middle of a page, so the rest of the page and the next list call fail. The
// result contains the failed instances as RemainingInstances, and a call with the cursor processes all other instances.
func TestReconcile_operatorSessionExpires_returnsRemainingInstances(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{}, nil, func(h *lost) {
		h.many(1600)
		var looked atomic.Int64
		fault := simaws.Interceptor(func(_ context.Context, c simaws.Call, next func() error) error {
			if readsInstance(c) {
				looked.Add(1)
			}
			if looked.Load() > 700 {
				return &smithy.GenericAPIError{
					Code: "ExpiredTokenException", Message: "The security token included in the request is expired",
				}
			}
			return next()
		})
		h.fault.Store(&fault)
		first, err := h.Reconcile(h.ctx, admin.ReconcileOptions{})
		if err == nil || first.Failed == 0 || first.Failed != int64(len(first.RemainingInstances)) ||
			first.Active+first.Failed != 1000 {
			t.Fatalf("%d instances are active, %d failed, %d remain, %v", first.Active, first.Failed,
				len(first.RemainingInstances), err)
		}

		h.fault.Store(nil)
		left, err := h.Reconcile(h.ctx, admin.ReconcileOptions{Instances: first.RemainingInstances})
		if err != nil || left.Active != first.Failed || len(left.RemainingInstances) > 0 {
			t.Errorf("reconciling the remaining instances: got %+v, error %v", left, err)
		}
		fromCursor, err := h.Reconcile(h.ctx, admin.ReconcileOptions{Cursor: first.Cursor})
		if err != nil || fromCursor.Active != 1100 {
			t.Errorf("reconciling from the cursor: %d active instances, %v; want 1100, starting with the failed page",
				fromCursor.Active, err)
		}
	})
}

// The operator has no permission to send to the new inbox. Reconcile returns the failed instances as
// RemainingInstances, and stops before it has tried every instance of the hub.
func TestReconcile_sendsAreDenied_returnsFailedInstancesAndStops(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{}, nil, func(h *lost) {
		h.many(3000)
		fault := simaws.Interceptor(func(_ context.Context, c simaws.Call, next func() error) error {
			if c.Operation == "SendMessageBatch" || c.Operation == "SendMessage" {
				return &smithy.GenericAPIError{
					Code: "AccessDeniedException", Message: "not authorized to perform sqs:SendMessage",
				}
			}
			return next()
		})
		h.fault.Store(&fault)
		began := time.Now()
		so, err := h.Reconcile(h.ctx, admin.ReconcileOptions{})
		if err == nil || so.Failed == 0 || so.Failed != int64(len(so.RemainingInstances)) || so.Failed > 1000 ||
			so.Cursor != "" || time.Since(began) > time.Minute {
			t.Errorf("after %v, %d of 3000 instances failed, %d remain, cursor %q, %v", time.Since(began), so.Failed,
				len(so.RemainingInstances), so.Cursor, err)
		}
	})
}

// More of the specified instances fail than Reconcile can keep for a later retry. RemainingInstances contains all
// unprocessed instances, including the instances that Reconcile has not tried.
func TestReconcile_tooManyNamedInstancesFail_returnsAllAsRemaining(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{}, nil, func(h *lost) {
		n := 1600
		all := make([]int, n)
		var ids []string
		for i := range all {
			all[i] = i
			ids = append(ids, fmt.Sprintf("slow-%d", i))
		}
		h.many(n, all...)
		h.throttleSlow(time.Now().Add(1000 * time.Hour))
		so, err := h.Reconcile(h.ctx, admin.ReconcileOptions{Instances: ids})
		slices.Sort(ids)
		if err == nil || !slices.Equal(so.RemainingInstances, ids) {
			t.Errorf("none of %d instances was processed, but %d remain, %v", n, len(so.RemainingInstances), err)
		}
	})
}

// The caller interrupts a reconciliation of specified instances. RemainingInstances contains the unprocessed ones.
func TestReconcile_interruptedWithNamedInstances_returnsUnprocessedOnes(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{}, nil, func(h *lost) {
		h.many(600)
		var ids []string
		for i := range 600 {
			ids = append(ids, fmt.Sprintf("i-%d", i))
		}
		crashing, crash := context.WithCancel(h.ctx)
		defer crash()
		var looked atomic.Int64
		fault := simaws.Interceptor(func(_ context.Context, c simaws.Call, next func() error) error {
			if readsInstance(c) && looked.Add(1) == 100 {
				crash()
			}
			return next()
		})
		h.fault.Store(&fault)
		so, err := h.Reconcile(crashing, admin.ReconcileOptions{Instances: ids})
		if !errors.Is(err, context.Canceled) || so.Instances == 0 ||
			so.Instances+int64(len(so.RemainingInstances)) != 600 {
			t.Errorf("processed %d of 600 instances, %d remain, %v", so.Instances, len(so.RemainingInstances), err)
		}
	})
}
