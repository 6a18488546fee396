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

// looksAt reports whether a call reads the item of an instance.
func looksAt(c simaws.Call) bool {
	in, ok := c.Input.(*dynamodb.GetItemInput)
	return ok && strings.HasPrefix(in.Key["pk"].(*types.AttributeValueMemberS).Value, "i#")
}

// The operator's session expires in the middle of a page: the rest of the page fails, and then the list. Going on from
// the cursor reaches every instance, and those that have failed are left.
func TestASessionThatExpiresLosesNoInstance(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{}, nil, func(h *lost) {
		h.many(1600)
		var looked atomic.Int64
		fault := simaws.Interceptor(func(_ context.Context, c simaws.Call, next func() error) error {
			if looksAt(c) {
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
			t.Fatalf("%d live, %d have failed, %d are left, %v", first.Active, first.Failed,
				len(first.RemainingInstances), err)
		}

		h.fault.Store(nil)
		left, err := h.Reconcile(h.ctx, admin.ReconcileOptions{Instances: first.RemainingInstances})
		if err != nil || left.Active != first.Failed || len(left.RemainingInstances) > 0 {
			t.Errorf("of those that were left: %+v, %v", left, err)
		}
		onward, err := h.Reconcile(h.ctx, admin.ReconcileOptions{Cursor: first.Cursor})
		if err != nil || onward.Active != 1100 {
			t.Errorf("from the cursor on it reconciles %d, %v; want 1100, of the page that has failed on",
				onward.Active, err)
		}
	})
}

// The operator may not send to the new inbox. What has failed is left, and Reconcile does not go through all of the hub
// to say so.
func TestWhatIsRefusedForGoodIsLeft(t *testing.T) {
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
			t.Errorf("after %v %d of 3000 have failed, %d are left, the cursor is %q, %v", time.Since(began), so.Failed,
				len(so.RemainingInstances), so.Cursor, err)
		}
	})
}

// Of named instances more fail than can be set aside. What is not done is left, whether it was tried or not.
func TestNamedInstancesThatWereNotTriedAreLeft(t *testing.T) {
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
			t.Errorf("none of %d is done, and %d are left, %v", n, len(so.RemainingInstances), err)
		}
	})
}

// A call for named instances is interrupted: those that are not done are left.
func TestNamedInstancesAreLeftWhenTheCallIsInterrupted(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{}, nil, func(h *lost) {
		h.many(600)
		var ids []string
		for i := range 600 {
			ids = append(ids, fmt.Sprintf("i-%d", i))
		}
		dying, die := context.WithCancel(h.ctx)
		defer die()
		var looked atomic.Int64
		fault := simaws.Interceptor(func(_ context.Context, c simaws.Call, next func() error) error {
			if looksAt(c) && looked.Add(1) == 100 {
				die()
			}
			return next()
		})
		h.fault.Store(&fault)
		so, err := h.Reconcile(dying, admin.ReconcileOptions{Instances: ids})
		if !errors.Is(err, context.Canceled) || so.Instances == 0 ||
			so.Instances+int64(len(so.RemainingInstances)) != 600 {
			t.Errorf("of 600 named %d are done and %d are left, %v", so.Instances, len(so.RemainingInstances), err)
		}
	})
}
