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

// mustReconcile reconciles, and lets the hub work then.
func (h *lost) mustReconcile() admin.ReconcileResult {
	h.t.Helper()
	so, err := h.Reconcile(h.ctx, admin.ReconcileOptions{})
	if err != nil {
		h.t.Fatalf("%+v, %v", so, err)
	}
	h.ServeFor(h.ctx, 10*time.Minute)
	return so
}

// wantStatus looks at an instance.
func (h *lost) wantStatus(id string, want client.RuntimeStatus) client.Status {
	h.t.Helper()
	s, err := h.Status(h.ctx, id)
	if err != nil || s.Status != want {
		h.t.Errorf("%s is %s, %v; want %s", id, s.Status, err, want)
	}
	return s
}

// wantCancelledFor looks for the reason of an instance's cancel.
func (h *lost) wantCancelledFor(id, reason string) {
	h.t.Helper()
	s := h.wantStatus(id, client.StatusCancelled)
	for e, err := range h.Provider.ReadHistory(h.ctx, id, s.ExecutionID, 0) {
		if err != nil {
			h.t.Fatal(err)
		}
		if e.Kind == history.CancelRequested && (e.Reason != reason || e.RequestedBy != "parent:i") {
			h.t.Errorf("%s was cancelled for %s by %s; want %s by its parent", id, e.Reason, e.RequestedBy, reason)
		}
	}
}

// A parent left its child, ended and was purged, and the cancel was in a queue that is gone. Nothing of the parent can
// send it again.
func TestAChildIsCancelledWhoseParentWasPurged(t *testing.T) {
	t.Parallel()
	for name, days := range map[string]int{"lately": 1, "so long ago that its tombstone is gone": 40} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onHub(t, simhub.Options{BatchSize: 1}, nil, func(h *lost) {
				h.unheard("cancel")
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
					t.Errorf("it is cancelled, and %d messages are sent", so.Sent)
				}
			})
		})
	}
}

// A deletion had told the children, and was under way at the second that was restored: it does not tell them again.
func TestAChildIsCancelledWhoseParentWasBeingDeleted(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{BatchSize: 1}, nil, func(h *lost) {
		h.unheard("cancel")
		if _, err := h.Start(h.ctx, "leaves", time.Hour, client.WithInstanceID("i")); err != nil {
			t.Fatal(err)
		}
		h.ServeFor(h.ctx, 5*time.Minute)
		dying, die := context.WithCancel(h.ctx)
		defer die()
		fault := simaws.Interceptor(func(ctx context.Context, c simaws.Call, next func() error) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			err := next()
			if in, ok := c.Input.(*dynamodb.UpdateItemInput); ok && strings.Contains(*in.UpdateExpression, "erasing") {
				die()
			}
			return err
		})
		h.fault.Store(&fault)
		_ = h.Purge(dying, "i", client.Force())
		h.fault.Store(nil)
		h.wantStatus("i", client.StatusDeleting)
		time.Sleep(20 * time.Minute)
		h.emptied()
		h.mustReconcile()
		h.wantCancelledFor("left-by-i", history.ReasonInstanceDeleted)
	})
}

// A parent left its child when it continued as new, three weeks ago. --lookback does not reach the execution that has
// decided so, and the child is cancelled.
func TestAChildIsCancelledThatAPastExecutionHasLeftLongAgo(t *testing.T) {
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
		h.unheard("cancel")
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

// childOf returns the one child of an instance.
func (h *lost) childOf(id string) string {
	h.t.Helper()
	all, err := client.Collect(h.List(h.ctx, client.ListQuery{ParentID: id}))
	if err != nil || len(all) != 1 {
		h.t.Fatal(all, err)
	}
	return all[0].InstanceID
}

// untoldParent makes a parent "i" whose child is over and purged, and whose outcome was in a queue that is gone.
func (h *lost) untoldParent() (child string) {
	h.t.Helper()
	h.unheard("childOutcome")
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
	h.back = true // what runs from here on runs again
	h.mu.Unlock()
	return child
}

// wantToldOnce: the parent has heard that the outcome is lost, and the child has not run again.
func (h *lost) wantToldOnce(why string) {
	h.t.Helper()
	s := h.wantStatus("i", client.StatusFailed)
	if s.Failure == nil || !strings.Contains(s.Failure.Message, why) {
		h.t.Errorf("the parent fails with %+v; want that its child %s", s.Failure, why)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.runs) > 0 {
		h.t.Errorf("the child, which was over, ran again: %v", h.runs)
	}
}

// The parent of a child that was purged before its outcome arrived is told just that: "the id is in use" is no answer.
func TestAParentIsToldThatItsChildWasPurged(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{BatchSize: 1}, nil, func(h *lost) {
		h.untoldParent()
		time.Sleep(24 * time.Hour)
		h.emptied()
		if so := h.mustReconcile(); so.LostChildren != 0 {
			t.Errorf("%+v", so)
		}
		h.wantToldOnce("was purged before its outcome arrived")
	})
}

// The same 40 days later, when the tombstone is gone: the child does not run again, also where two reconcile at once
// while the hub is at work, each message comes twice, and where the answer was lost with another queue.
func TestAChildThatWasPurgedLongAgoDoesNotRunAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ operators, times int }{
		"once": {1, 1}, "two at once": {2, 1}, "again, with queues that are emptied": {1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onHub(t, simhub.Options{BatchSize: 1}, nil, func(h *lost) {
				child := h.untoldParent()
				time.Sleep(40 * 24 * time.Hour)
				h.expire(child)
				h.emptied()
				for n := range c.times {
					var all sync.WaitGroup
					for range c.operators {
						all.Go(func() {
							so, err := h.Reconcile(h.ctx, admin.ReconcileOptions{})
							// the parent of the second may be over by then
							if err != nil || so.LostChildren != 1 && c.operators == 1 {
								t.Errorf("%+v, %v", so, err)
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
				h.wantToldOnce("its start is too old to tell whether it ran")
			})
		})
	}
}

// A child that was started 40 days ago and lives is nobody's loss.
func TestAChildOfLongAgoThatLivesGoesOn(t *testing.T) {
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
			t.Errorf("%+v", so)
		}
		if err := h.RaiseEvent(h.ctx, "old-child", "e", 1); err != nil {
			t.Fatal(err)
		}
		h.ServeFor(h.ctx, 5*time.Minute)
		h.wantStatus("i", client.StatusCompleted)
	})
}

// A living instance has started something three weeks ago, which has not arrived: its wake leads to that, whatever
// --lookback says, so it is sent, and not counted as left out.
func TestWhatALivingInstanceHasStartedIsNotCountedAsLeftOut(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{BatchSize: 1}, addHolder, func(h *lost) {
		h.unheard("start")
		if _, err := h.Start(h.ctx, "holder", 0, client.WithInstanceID("i")); err != nil {
			t.Fatal(err)
		}
		h.ServeFor(h.ctx, 5*time.Minute)
		h.aged20()
		if so := h.mustReconcile(); so.SkippedOutputs != 0 || so.Active != 1 {
			t.Errorf("it is sent, and the call says %+v", so)
		}
		h.wantStatus("loose-old", client.StatusCompleted)
	})
	onHub(t, simhub.Options{BatchSize: 1}, addHolder, func(h *lost) {
		h.aged()
		if so := h.mustReconcile(); so.SkippedOutputs != 1 || so.Active != 1 {
			t.Errorf("it is left out, and the call says %+v", so)
		}
	})
}

// Of what is over nothing is started again, however far back one looks, once nothing is left that would keep it from
// that.
func TestWhatAnEndedInstanceHasStartedDoesNotRunAgain(t *testing.T) {
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
			t.Errorf("%+v, %v", so, err)
		}
		h.ServeFor(h.ctx, 10*time.Minute)
		if left, err := client.Collect(h.List(h.ctx, client.ListQuery{Orchestration: "chain"})); err != nil ||
			len(left) > 0 || len(h.runs) > 0 {
			t.Errorf("%d run again, %v, %v", len(left), h.runs, err)
		}
	})
}

// A parent of many children is looked at once for all of them, and not once for each.
func TestAParentIsLookedAtOnceForAllOfItsChildren(t *testing.T) {
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
			t.Errorf("%d reads of %d instances, %+v, %v; want one of each, and one of the parent for all its children",
				reads, so.Active, so, err)
		}
	})
}

// A parent whose item is damaged is none of its child's business.
func TestAChildIsReconciledBesideADamagedParent(t *testing.T) {
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
			t.Errorf("%+v, %v; want a wake alone", so, err)
		}
	})
}
