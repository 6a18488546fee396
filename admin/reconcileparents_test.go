package admin_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
)

// mustReconcile reconciles the hub, and then runs the hub for 10 minutes.
func (h *lost) mustReconcile() admin.ReconcileResult {
	h.t.Helper()
	so, err := h.Reconcile(h.ctx, admin.ReconcileOptions{})
	if err != nil {
		h.t.Fatalf("got %+v, error %v", so, err)
	}
	h.ServeFor(h.ctx, 10*time.Minute)
	return so
}

// wantStatus checks the status of an instance.
func (h *lost) wantStatus(id string, want client.RuntimeStatus) client.Status {
	h.t.Helper()
	s, err := h.Status(h.ctx, id)
	if err != nil || s.Status != want {
		h.t.Errorf("%s is %s, %v; want %s", id, s.Status, err, want)
	}
	return s
}

// wantCancelledFor checks that the parent i has cancelled an instance, and checks the reason.
func (h *lost) wantCancelledFor(id, reason string) {
	h.t.Helper()
	s := h.wantStatus(id, client.StatusCancelled)
	for e, err := range h.Provider.ReadHistory(h.ctx, id, s.ExecutionID, 0) {
		if err != nil {
			h.t.Fatal(err)
		}
		if e.Kind == history.CancelRequested && (e.Reason != reason || e.RequestedBy != "parent:i") {
			h.t.Errorf("%s was cancelled with %s by %s; want %s by parent:i", id, e.Reason, e.RequestedBy, reason)
		}
	}
}

// A parent abandoned its child, ended and was purged, and the queue has lost the cancel request. The parent has no
// records left, so a reconciliation of the child must send the cancel request.
func TestReconcile_parentWasPurged_childIsCancelled(t *testing.T) {
	t.Parallel()
	for name, days := range map[string]int{"lately": 1, "so long ago that its tombstone is gone": 40} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onHub(t, simhub.Options{BatchSize: 1}, nil, func(h *lost) {
				h.failDeliveries("cancel")
				if _, err := h.Start(h.ctx, "leaves", time.Minute, client.WithInstanceID("i")); err != nil {
					t.Fatal(err)
				}
				h.ServeFor(h.ctx, 5*time.Minute)
				h.fault.Store(nil)
				if err := h.Purge(h.ctx, "i"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Duration(days) * 24 * time.Hour)
				h.expire("i")
				h.emptied()
				h.wantStatus("left-by-i", client.StatusRunning)
				h.mustReconcile()
				h.wantCancelledFor("left-by-i", history.ReasonInstanceDeleted)
				if so := h.mustReconcile(); so.Sent != 0 {
					t.Errorf("reconciling a cancelled child sends %d messages; want 0", so.Sent)
				}
			})
		})
	}
}

// The deletion of a parent had already notified the children, and was in progress at the restored point in time. The
// deletion does not notify the children again, so a reconciliation of the child must send the cancel request.
func TestReconcile_parentIsBeingDeleted_childIsCancelled(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{BatchSize: 1}, nil, func(h *lost) {
		h.failDeliveries("cancel")
		if _, err := h.Start(h.ctx, "leaves", time.Hour, client.WithInstanceID("i")); err != nil {
			t.Fatal(err)
		}
		h.ServeFor(h.ctx, 5*time.Minute)
		crashing, crash := context.WithCancel(h.ctx)
		defer crash()
		fault := simaws.Interceptor(func(ctx context.Context, c simaws.Call, next func() error) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			err := next()
			if in, ok := c.Input.(*dynamodb.UpdateItemInput); ok && strings.Contains(*in.UpdateExpression, "erasing") {
				crash()
			}
			return err
		})
		h.fault.Store(&fault)
		_ = h.Purge(crashing, "i", client.Force())
		h.fault.Store(nil)
		h.wantStatus("i", client.StatusDeleting)
		time.Sleep(20 * time.Minute)
		h.emptied()
		h.mustReconcile()
		h.wantCancelledFor("left-by-i", history.ReasonInstanceDeleted)
	})
}

// A parent abandoned its child three weeks ago by continuing as new. That execution is older than the lookback, but a
// reconciliation still cancels the child.
func TestReconcile_childAbandonedByPastExecution_isCancelled(t *testing.T) {
	t.Parallel()
	fill := func(_ *lost, r *perdure.Registry) {
		perdure.AddOrchestration(r, "moves-on", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
			switch n {
			case 0:
				return perdure.WaitForExternalEvent[int](ctx, "e").Await(ctx)
			case 2:
				_ = perdure.CallSubOrchestrationByName[int](ctx, "forever", 0, perdure.WithInstanceID("left-by-i"))
			}
			if err := perdure.Sleep(ctx, time.Minute); err != nil {
				return 0, err
			}
			return perdure.ContinueAsNew[int](ctx, n-1)
		})
	}
	onHub(t, simhub.Options{BatchSize: 1}, fill, func(h *lost) {
		h.failDeliveries("cancel")
		if _, err := h.Start(h.ctx, "moves-on", 2, client.WithInstanceID("i")); err != nil {
			t.Fatal(err)
		}
		h.ServeFor(h.ctx, 5*time.Minute)
		h.aged20()
		h.wantStatus("left-by-i", client.StatusRunning)
		h.mustReconcile()
		h.wantCancelledFor("left-by-i", history.TerminalReason(history.OrchestrationContinuedAsNew))
		h.wantStatus("i", client.StatusRunning)
	})
}

// childOf returns the ID of an instance's only child.
func (h *lost) childOf(id string) string {
	h.t.Helper()
	all, err := client.Collect(h.List(h.ctx, client.ListQuery{ParentID: id}))
	if err != nil || len(all) != 1 {
		h.t.Fatal(all, err)
	}
	return all[0].InstanceID
}

// parentWithLostOutcome creates a parent "i" with a completed and purged child. The queue has lost the outcome of the
// child.
func (h *lost) parentWithLostOutcome() (child string) {
	h.t.Helper()
	h.failDeliveries("childOutcome")
	if _, err := h.Start(h.ctx, "parent", 1, client.WithInstanceID("i")); err != nil {
		h.t.Fatal(err)
	}
	h.ServeFor(h.ctx, 5*time.Minute)
	child = h.childOf("i")
	h.wantStatus(child, client.StatusCompleted)
	h.fault.Store(nil)
	if err := h.Purge(h.ctx, child); err != nil {
		h.t.Fatal(err)
	}
	h.mu.Lock()
	h.back = true // each later run of an activity is a repeated run
	h.mu.Unlock()
	return child
}

// wantOneFailure checks that the parent has failed because the outcome is lost, and that the child has not run again.
func (h *lost) wantOneFailure(why string) {
	h.t.Helper()
	s := h.wantStatus("i", client.StatusFailed)
	if s.Failure == nil || !strings.Contains(s.Failure.Message, why) {
		h.t.Errorf("the parent failed with %+v; want a message that contains %q", s.Failure, why)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.runs) > 0 {
		h.t.Errorf("the completed child ran again: %v", h.runs)
	}
}

// A child was purged before its outcome arrived. The parent receives a failure with this cause, not the error "the ID
// is in use".
func TestReconcile_childWasPurged_parentFailsWithTheCause(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{BatchSize: 1}, nil, func(h *lost) {
		h.parentWithLostOutcome()
		time.Sleep(24 * time.Hour)
		h.emptied()
		if so := h.mustReconcile(); so.LostChildren != 0 {
			t.Errorf("got %+v", so)
		}
		h.wantOneFailure("was purged before its outcome arrived")
	})
}

// A child was purged 40 days ago, and its tombstone has expired. The child does not run again in any of these cases:
//   - two operators reconcile concurrently while the hub runs, and each operator sends the messages
//   - the queues are emptied again, and the outcome is lost a second time
func TestReconcile_childWasPurgedFortyDaysAgo_doesNotRunAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ operators, times int }{
		"once": {1, 1}, "two at once": {2, 1}, "again, with queues that are emptied": {1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onHub(t, simhub.Options{BatchSize: 1}, nil, func(h *lost) {
				child := h.parentWithLostOutcome()
				time.Sleep(40 * 24 * time.Hour)
				h.expire(child)
				h.emptied()
				for n := range c.times {
					var all sync.WaitGroup
					for range c.operators {
						all.Go(func() {
							so, err := h.Reconcile(h.ctx, admin.ReconcileOptions{})
							// the parent may have ended before the second operator reads the parent
							if err != nil || so.LostChildren != 1 && c.operators == 1 {
								t.Errorf("got %+v, error %v", so, err)
							}
						})
					}
					if n < c.times-1 {
						all.Wait()
						time.Sleep(time.Hour)
						h.emptied()
						continue
					}
					h.ServeFor(h.ctx, 10*time.Minute)
					all.Wait()
				}
				h.ServeFor(h.ctx, 10*time.Minute)
				h.wantOneFailure("its start is too old to determine whether it ran")
			})
		})
	}
}

// A reconciliation does not report a child as lost if the child was started 40 days ago and is still running.
func TestReconcile_runningChildFromFortyDaysAgo_isNotReportedAsLost(t *testing.T) {
	t.Parallel()
	fill := func(_ *lost, r *perdure.Registry) {
		perdure.AddOrchestration(r, "waits-for-it", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			return perdure.CallSubOrchestrationByName[int](ctx, "event", 0,
				perdure.WithInstanceID("old-child")).Await(ctx)
		})
	}
	onHub(t, simhub.Options{BatchSize: 1}, fill, func(h *lost) {
		if _, err := h.Start(h.ctx, "waits-for-it", 1, client.WithInstanceID("i")); err != nil {
			t.Fatal(err)
		}
		h.ServeFor(h.ctx, 5*time.Minute)
		time.Sleep(40 * 24 * time.Hour)
		h.emptied()
		if so := h.mustReconcile(); so.LostChildren != 0 || so.Active != 2 {
			t.Errorf("got %+v", so)
		}
		if err := h.RaiseEvent(h.ctx, "old-child", "e", 1); err != nil {
			t.Fatal(err)
		}
		h.ServeFor(h.ctx, 5*time.Minute)
		h.wantStatus("i", client.StatusCompleted)
	})
}

// A running instance sent a detached start three weeks ago, and the start has not arrived. The wake message of the
// instance sends the start again, independent of the lookback, so a reconciliation does not count the start as skipped.
// A start from more than 28 days ago is skipped and counted.
func TestReconcile_detachedStartOfRunningInstance_isSkippedOnlyAfterTheLongestLookback(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{BatchSize: 1}, addHolder, func(h *lost) {
		h.failDeliveries("start")
		if _, err := h.Start(h.ctx, "holder", 0, client.WithInstanceID("i")); err != nil {
			t.Fatal(err)
		}
		h.ServeFor(h.ctx, 5*time.Minute)
		h.aged20()
		if so := h.mustReconcile(); so.SkippedOutputs != 0 || so.Active != 1 {
			t.Errorf("the start is sent again, but Reconcile returns %+v", so)
		}
		h.wantStatus("loose-old", client.StatusCompleted)
	})
	onHub(t, simhub.Options{BatchSize: 1}, addHolder, func(h *lost) {
		h.aged()
		if so := h.mustReconcile(); so.SkippedOutputs != 1 || so.Active != 1 {
			t.Errorf("the start is skipped, but Reconcile returns %+v", so)
		}
	})
}

// Ended instances have started other instances, which were purged and whose tombstones have expired. A reconciliation
// does not start these instances again, even with the longest lookback.
func TestReconcile_purgedInstancesStartedByEndedOnes_doNotRunAgain(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{BatchSize: 1}, nil, func(h *lost) {
		for _, kind := range []string{"parent", "detaches", "eternal"} {
			if _, err := h.Start(h.ctx, kind, 1, client.WithInstanceID(kind)); err != nil {
				t.Fatal(err)
			}
		}
		h.ServeFor(h.ctx, 30*time.Minute)
		started, err := client.Collect(h.List(h.ctx, client.ListQuery{Orchestration: "chain"}))
		if err != nil || len(started) != 4 {
			t.Fatal(started, err)
		}
		for _, s := range started {
			if err := h.Purge(h.ctx, s.InstanceID); err != nil {
				t.Fatal(err)
			}
		}
		h.back = true
		time.Sleep(40 * 24 * time.Hour)
		for _, s := range started {
			h.expire(s.InstanceID)
		}
		h.emptied()
		so, err := h.Reconcile(h.ctx, admin.ReconcileOptions{Lookback: 28 * 24 * time.Hour})
		if err != nil || so.EndedBeforeLookback != 3 || so.Sent != 0 {
			t.Errorf("got %+v, error %v", so, err)
		}
		h.ServeFor(h.ctx, 10*time.Minute)
		if left, err := client.Collect(h.List(h.ctx, client.ListQuery{Orchestration: "chain"})); err != nil ||
			len(left) > 0 || len(h.runs) > 0 {
			t.Errorf("%d instances were started again, activities ran %v, %v", len(left), h.runs, err)
		}
	})
}

func TestReconcile_parentOfManyChildren_isReadOnce(t *testing.T) {
	t.Parallel()
	fill := func(_ *lost, r *perdure.Registry) {
		perdure.AddOrchestration(r, "family", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
			var all []*perdure.Future[int]
			for range n {
				all = append(all, perdure.CallSubOrchestrationByName[int](ctx, "event", 0))
			}
			return 1, perdure.WhenAll(ctx, perdure.Awaitables(all)...)
		})
	}
	onHub(t, simhub.Options{}, fill, func(h *lost) {
		if _, err := h.Start(h.ctx, "family", 200, client.WithInstanceID("i")); err != nil {
			t.Fatal(err)
		}
		h.ServeFor(h.ctx, 5*time.Minute)
		h.Close()
		h.Cloud.ResetCounts()
		so, err := h.Reconcile(h.ctx, admin.ReconcileOptions{Concurrency: 1})
		if reads := h.Cloud.Counts()["DynamoDB.GetItem"]; err != nil || so.Active != 201 || reads != 202 {
			t.Errorf("%d reads of %d instances, %+v, %v; want one per instance, and one of the parent for all children",
				reads, so.Active, so, err)
		}
	})
}

func TestReconcile_corruptParent_childIsReconciled(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{BatchSize: 1}, nil, func(h *lost) {
		if _, err := h.Start(h.ctx, "leaves", time.Hour, client.WithInstanceID("i")); err != nil {
			t.Fatal(err)
		}
		h.ServeFor(h.ctx, 5*time.Minute)
		table := h.Provider.Config().Table
		text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
		_, err := h.Cloud.Table.UpdateItem(h.ctx, &dynamodb.UpdateItemInput{
			TableName: &table, Key: map[string]types.AttributeValue{"pk": text("i#i"), "sk": text("i")},
			UpdateExpression:          aws.String("SET updated = :no"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":no": text("no time")},
		})
		if err != nil {
			t.Fatal(err)
		}
		so, err := h.Reconcile(h.ctx, admin.ReconcileOptions{Instances: []string{"left-by-i"}})
		if err != nil || so.Active != 1 || so.Sent != 1 {
			t.Errorf("%+v, %v; want one wake message only", so, err)
		}
	})
}
