package admin_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// emptied purges the queues of a restored hub, and checks that no schedules remain.
func (h *lost) emptied() {
	h.t.Helper()
	if _, err := h.PurgeQueues(h.ctx); err != nil {
		h.t.Fatal(err)
	}
	if n := h.Cloud.Schedules.Count(); n > 0 {
		h.t.Errorf("%d schedules remain; want 0", n)
	}
}

// PurgeQueues returns ErrBusy and deletes no message while a worker handles a message or a dead letter exists.
func TestPurgeQueues_deadLetterOrMessageInFlight_returnsErrBusy(t *testing.T) {
	t.Parallel()
	withLetters(t, 2, func(ctx context.Context, h *deadLetterHub) {
		h.failMessages(ctx, 1, "corrupt: for now")
		if err := h.RaiseEvent(ctx, "i", "e", 1); err != nil {
			t.Fatal(err)
		}
		if _, err := h.PurgeQueues(ctx); !errors.Is(err, provider.ErrBusy) ||
			!strings.Contains(err.Error(), "1 dead letters") {
			t.Errorf("PurgeQueues with a dead letter returns the error %v; want ErrBusy", err)
		}
		if _, err := h.RedriveDeadLetters(ctx, admin.DeadLetterQuery{}); err != nil {
			t.Fatal(err)
		}
		records, err := h.Provider.FetchRecords(ctx, provider.QueueInbox)
		if err != nil || len(records) == 0 {
			t.Fatal(records, err)
		}
		if _, err := h.PurgeQueues(ctx); !errors.Is(err, provider.ErrBusy) ||
			!strings.Contains(err.Error(), "queue inbox") {
			t.Errorf("PurgeQueues with a message in flight returns the error %v; want ErrBusy", err)
		}
		_ = h.Provider.AbandonRecords(ctx, provider.QueueInbox, 0, records...)
		h.wantSum(ctx, 2)
	})
}

// PurgeQueues deletes schedules before it purges the queues. A schedule that fires during the deletion belongs to a
// lost history, and its timer may have the same ID as a timer of the new history.
func TestPurgeQueues_scheduleFiresDuringDeletion_deletesItsMessage(t *testing.T) {
	t.Parallel()
	fill := func(_ *lost, r *perdure.Registry) {
		perdure.AddOrchestration(r, "waits", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
			hours, err := perdure.WaitForExternalEvent[int](ctx, "e").Await(ctx)
			if err != nil {
				return "", err
			}
			began := ctx.Now()
			err = perdure.Sleep(ctx, time.Duration(hours)*time.Hour)
			return ctx.Now().Sub(began).Round(time.Hour).String(), err
		})
	}
	onHub(t, simhub.Options{}, fill, func(h *lost) {
		if _, err := h.Start(h.ctx, "waits", 0, client.WithInstanceID("i")); err != nil {
			t.Fatal(err)
		}
		h.ServeFor(h.ctx, time.Minute)
		backup := h.Cloud.Table.Backup()
		if err := h.RaiseEvent(h.ctx, "i", "e", 1); err != nil { // the restore discards this event
			t.Fatal(err)
		}
		h.ServeFor(h.ctx, 30*time.Minute)
		h.Close()
		time.Sleep(20 * time.Minute)
		h.Cloud.Table.Restore(backup)
		hub, err := simhub.New(simhub.Options{Registry: func() *perdure.Registry {
			r := h.registry(true)
			fill(h, r)
			return r
		}(), On: h.Hub, BuildID: "fixed"})
		if err != nil {
			t.Fatal(err)
		}
		h.Hub, h.Client, h.operator = hub, client.New(hub.Provider), admin.New(hub.Provider)
		slow := simaws.Interceptor(func(_ context.Context, c simaws.Call, next func() error) error {
			if c.Operation == "DeleteSchedule" {
				time.Sleep(20 * time.Minute) // simulates a hub with many schedules
			}
			return next()
		})
		h.fault.Store(&slow)
		if _, err := h.PurgeQueues(h.ctx); err != nil {
			t.Fatal(err)
		}
		h.fault.Store(nil)
		h.wantNoTimers()
		if err := h.RaiseEvent(h.ctx, "i", "e", 10); err != nil { // clients must send lost events again
			t.Fatal(err)
		}
		if _, err := h.Reconcile(h.ctx, admin.ReconcileOptions{}); err != nil {
			t.Fatal(err)
		}
		h.ServeFor(h.ctx, 24*time.Hour)
		if s, err := h.Status(h.ctx, "i"); err != nil || string(s.Output) != `"10h0m0s"` {
			t.Errorf("the timer of 10 hours fired after %s, status %s, error %v; want 10h0m0s", s.Output, s.Status, err)
		}
	})
}

// SQS rejects a purge of a queue within a minute of the previous purge. PurgeQueues repeats the purge until SQS accepts
// the purge.
func TestPurgeQueues_sqsRejectsPurge_repeatsThePurge(t *testing.T) {
	t.Parallel()
	onHub(t, simhub.Options{}, nil, func(h *lost) {
		h.Close()
		var mu sync.Mutex
		purged := map[string]time.Time{}
		fault := simaws.Interceptor(func(_ context.Context, c simaws.Call, next func() error) error {
			if in, ok := c.Input.(*sqs.PurgeQueueInput); ok {
				mu.Lock()
				defer mu.Unlock()
				if at, ok := purged[*in.QueueUrl]; ok && time.Since(at) < time.Minute {
					return &sqstypes.PurgeQueueInProgress{}
				}
				purged[*in.QueueUrl] = time.Now()
			}
			return next()
		})
		h.fault.Store(&fault)
		if _, err := h.Provider.PurgeQueues(h.ctx, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		// a schedule fires
		if err := h.Provider.HoldTimers(h.ctx,
			provider.Timer{V: 1, InstanceID: "i", ExecutionID: "x", TimerID: 3, FireAt: time.Now()}); err != nil {
			t.Fatal(err)
		}
		if _, err := h.PurgeQueues(h.ctx); err != nil {
			t.Fatal(err)
		}
		h.wantNoTimers()
	})
}

// wantNoTimers checks that the timers queue is empty.
func (h *lost) wantNoTimers() {
	h.t.Helper()
	url := h.Provider.Config().TimersURL
	out, err := h.Cloud.Queues.GetQueueAttributes(h.ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &url, AttributeNames: []sqstypes.QueueAttributeName{"All"},
	})
	if err != nil || out.Attributes["ApproximateNumberOfMessages"] != "0" {
		h.t.Errorf("the timers queue has %s messages after a purge, error %v; want 0",
			out.Attributes["ApproximateNumberOfMessages"], err)
	}
}
