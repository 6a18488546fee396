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

// ofPurge marks the calls by which a purge of a queue goes on.
type ofPurge struct{}

// purgesLast lets each purge of a queue delete once more after a time, as SQS may for a minute. It returns what the
// test waits for.
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

// Two people bring the hub back, the second five minutes after the first: what one sends is not taken for what the
// purge of the other deletes.
func TestTwoWhoEmptyQueuesAtOnceLoseNothing(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{BatchSize: 1}, nil, func(h *lost) {
		h.unheard("start")
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
			if _, err := h.Timekeeper.Sweep(h.ctx); err != nil {
				t.Error(err)
			}
		}
		if s, err := h.Status(h.ctx, "i"); err != nil || s.Status != client.StatusCompleted {
			t.Errorf("a day later the parent is %s, %v", s.Status, err)
		}
	})
}

// A client sends while queues are emptied, and its message is deleted. What it sends again afterwards, with the same
// id, arrives.
func TestWhatIsSentAgainAfterQueuesWereEmptiedArrives(t *testing.T) {
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
			time.Sleep(time.Minute + 50*time.Second) // while the purges are under way, which begin after a minute
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
			t.Errorf("the event was sent twice with the same id, once after all was emptied and sent, and the "+
				"instance is %s, %v", s.Status, err)
		}
	})
}
