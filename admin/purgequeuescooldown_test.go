package admin_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
)

// ofPurge is the context key of the calls that repeat a purge of a queue.
type ofPurge struct{}

// purgesLast repeats each purge of a queue after the duration lasts, because SQS may delete messages for a minute.
// The returned WaitGroup waits for the repeated purges.
func (h *lost) purgesLast(lasts time.Duration) *sync.WaitGroup {
	var purging sync.WaitGroup
	fault := simaws.Interceptor(func(ctx context.Context, c simaws.Call, next func() error) error {
		err := next()
		if in, ok := c.Input.(*sqs.PurgeQueueInput); ok && ctx.Value(ofPurge{}) == nil {
			purging.Go(func() {
				time.Sleep(lasts)
				_, _ = h.Cloud.Queues.PurgeQueue(context.WithValue(context.WithoutCancel(ctx), ofPurge{}, true), in)
			})
		}
		return err
	})
	h.fault.Store(&fault)
	return &purging
}

// Two operators recover the hub, and the second one starts five minutes after the first one.
// The purge by one operator does not cause the loss of a message that the other operator sends.
func TestPurgeQueues_twoOperators_loseNoMessage(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{BatchSize: 1}, nil, func(h *lost) {
		h.failDeliveries("start")
		if _, err := h.Start(h.ctx, "parent", 1, client.WithInstanceID("i")); err != nil {
			t.Fatal(err)
		}
		h.ServeFor(h.ctx, 5*time.Minute)
		time.Sleep(20 * time.Minute)
		purging := h.purgesLast(50 * time.Second)
		var both sync.WaitGroup
		for i := range 2 {
			both.Go(func() {
				time.Sleep(time.Duration(i) * (4*time.Minute + 45*time.Second))
				if _, err := h.PurgeQueues(h.ctx); err != nil {
					t.Error(i, err)
				}
				if _, err := h.Reconcile(h.ctx, admin.ReconcileOptions{}); err != nil {
					t.Error(i, err)
				}
			})
		}
		both.Wait()
		purging.Wait()
		h.fault.Store(nil)
		for range 24 {
			h.ServeFor(h.ctx, time.Hour)
			if _, err := h.Renewer.Sweep(h.ctx); err != nil {
				t.Error(err)
			}
		}
		if s, err := h.Status(h.ctx, "i"); err != nil || s.Status != client.StatusCompleted {
			t.Errorf("the parent is %s after a day, error %v; want completed", s.Status, err)
		}
	})
}

// A client sends an event during a purge, and the purge deletes the event.
// If the client sends the event again after the purge with the same ID, the event arrives.
func TestPurgeQueues_eventSentAgainWithSameID_arrives(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{BatchSize: 1}, nil, func(h *lost) {
		h.many(1)
		h.ServeFor(h.ctx, time.Minute)
		time.Sleep(20 * time.Minute)
		purging := h.purgesLast(55 * time.Second)
		raise := func() {
			if err := h.RaiseEvent(h.ctx, "i-0", "e", 1, client.WithEventID("order-7 is paid")); err != nil {
				t.Error(err)
			}
		}
		purging.Go(func() {
			time.Sleep(3*time.Minute + 5*time.Second) // the purges start after 2:15 minutes, and are still running
			raise()
		})
		if _, err := h.PurgeQueues(h.ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Reconcile(h.ctx, admin.ReconcileOptions{}); err != nil {
			t.Fatal(err)
		}
		raise()
		purging.Wait()
		h.fault.Store(nil)
		h.ServeFor(h.ctx, time.Hour)
		if s, err := h.Status(h.ctx, "i-0"); err != nil || s.Status != client.StatusCompleted {
			t.Errorf("the client sent the event again with the same ID after the purge and the reconciliation, and "+
				"the instance is %s, error %v; want completed", s.Status, err)
		}
	})
}
