package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// DynamoDB is unavailable for ten minutes. The message does not use up its hundred deliveries, because the delays grow.
func TestOutage_tenMinutesWithoutTheTable_losesNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		began := time.Now()
		in := h.start("chain", 2)
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if c.Service == "DynamoDB" && time.Since(began) < 10*time.Minute {
				return errors.New("access denied")
			}
			return next()
		})
		if end := h.finish(in); string(end.Output) != "2" {
			t.Errorf("ended with %s", end.String())
		}
	})
}

// The orchestrator is deployed with a new activity, and the worker ten minutes later. The worker runs the activity.
func TestOutage_workerIsDeployedLater_runsTheActivity(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		in := h.start("chain", 1)
		h.turn(0)
		old := h.worker(perdure.NewRegistry())
		for began := time.Now(); time.Since(began) < 10*time.Minute; time.Sleep(time.Second) {
			if records := h.receive("sim://default"); len(records) > 0 {
				old.HandleRecords(ctx, records)
			}
		}
		if end := h.finish(in); string(end.Output) != "1" {
			t.Errorf("ended with %s", end.String())
		}
	})
}

func TestR19_outcomeIsRejected_recordIsVisibleAgainInSeconds(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		h.start("chain", 1)
		h.turn(0)
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if _, send := c.Input.(*sqs.SendMessageBatchInput); send {
				return errors.New("refused")
			}
			return next()
		})
		if failed := h.worker(registry()).HandleRecords(ctx, h.receive("sim://default")); len(failed) != 1 {
			t.Fatalf("got failed records %v, want 1", failed)
		}
		h.interfere(nil)
		time.Sleep(10 * time.Second)
		if again := h.receive("sim://default"); len(again) != 1 {
			t.Error("the work item was not redelivered within 10s")
		}
	})
}

// If a record cannot be read or copied to the dead-letter queue, no later record of its group may be processed.
// Otherwise, the watermark would count the record as consumed.
func TestR2_unreadableRecordCannotBeCopied_itsGroupFails(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		h.start("chain", 1)
		records := h.receive("sim://inbox.fifo")
		later := records[0]
		later.ID, later.Body, later.Sequence = "later", strings.Replace(later.Body, `"v":1`, `"v":2`, 1), "1"
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if send, ok := c.Input.(*sqs.SendMessageBatchInput); ok && strings.Contains(*send.QueueUrl, "dead") {
				return errors.New("refused")
			}
			return next()
		})
		failed := h.Orchestrators[0].HandleRecords(ctx, []provider.Record{later, records[0]})
		if len(failed) != 2 {
			t.Errorf("got failed records %v, want both of the group", failed)
		}
	})
}

// startPending starts instances and drops their wakes.
func (h *hub) startPending(ctx context.Context, ids ...string) {
	h.t.Helper()
	for _, id := range ids {
		start := provider.Start{InstanceID: id, Name: "chain", Input: encoded(h.t, 1), StartID: id}
		if _, err := h.Provider.StartOrchestration(ctx, start); err != nil {
			h.t.Fatal(err)
		}
	}
	_ = h.Provider.DeleteRecords(ctx, provider.QueueInbox, h.receive("sim://inbox.fifo")...)
}

// The sweeper did not run for hours, for example after a bad deployment.
func TestR11_sweeperWasDown_wakesPendingInstances(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		if _, err := h.Renewer.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
		h.startPending(ctx, "i-1")
		time.Sleep(7 * time.Hour)
		if woken, err := h.Renewer.Sweep(ctx); woken != 1 || err != nil {
			t.Errorf("the sweeper woke %d instances, %v; want 1", woken, err)
		}
	})
}

func TestR11_instanceStaysPending_wakesBecomeRare(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		h.startPending(ctx, "i-1")
		wakes := 0
		for range 25 {
			time.Sleep(2 * time.Minute)
			woken, err := h.Renewer.Sweep(ctx)
			if err != nil {
				t.Fatal(err)
			}
			wakes += woken
		}
		if wakes < 2 || wakes > 6 {
			t.Errorf("got %d wakes of one instance in 50 minutes, want 2 to 6", wakes)
		}
	})
}

// SQS rejects a batch of wakes. The sweeper sends the other batches, and wakes the remaining instances when they are
// due again.
func TestSweeper_batchOfWakesIsRejected_sendsTheOthers(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		for n := range 15 {
			h.startPending(ctx, fmt.Sprint("i-", n))
		}
		time.Sleep(3 * time.Minute)
		var sends atomic.Int64
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if _, send := c.Input.(*sqs.SendMessageBatchInput); send && sends.Add(1) == 1 {
				return errors.New("refused")
			}
			return next()
		})
		first, err := h.Renewer.Sweep(ctx)
		if first != 5 && first != 10 || err == nil {
			t.Errorf("the sweeper woke %d instances, %v; want those of the other batch, and the error", first, err)
		}
		time.Sleep(4 * time.Minute)
		h.receive("sim://inbox.fifo")
		if woken, err := h.Renewer.Sweep(ctx); woken != 15 || err != nil {
			t.Errorf("the next sweep woke %d instances, %v; want 15", woken, err)
		}
	})
}

// An activity that exceeds its start-to-close timeout fails with a TimeoutError, even if it ignores its context.
func TestStartToClose_expires_isATimeoutError(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "polite", func(ctx context.Context, _ int) (int, error) {
		<-ctx.Done()
		return 0, context.Cause(ctx)
	})
	perdure.AddActivity(r, "deaf", func(context.Context, int) (int, error) {
		time.Sleep(time.Minute)
		return 1, nil
	})
	perdure.AddOrchestration(r, "limited", func(ctx *perdure.OrchestrationContext, name string) (time.Duration, error) {
		start := ctx.Now()
		_, err := perdure.CallActivityByName[int](ctx, name, 1,
			perdure.WithStartToCloseTimeout(3*time.Second)).Await(ctx)
		if _, ok := errors.AsType[*perdure.TimeoutError](err); !ok {
			return 0, fmt.Errorf("got error %w, want a TimeoutError", err)
		}
		return ctx.Now().Sub(start), nil
	})
	for _, name := range []string{"polite", "deaf"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{Registry: r}, func(_ context.Context, h *hub) {
				end := h.finish(h.start("limited", name))
				if end.Kind != history.OrchestrationCompleted || string(end.Output) != "3000000000" {
					t.Errorf("ended with %s %s %v", end.String(), end.Output, end.Error)
				}
			})
		})
	}
}

func TestStatus_redeliveryAfterTheEnd_keepsUpdatedAt(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		in := h.start("nothing", 1)
		h.Orchestrators[0].HandleRecords(ctx, h.receive("sim://inbox.fifo"))
		ended, err := h.Provider.ReadInstance(ctx, in.InstanceID)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		h.turn(0) // processes the redelivered wake
		if again, err := h.Provider.ReadInstance(ctx, in.InstanceID); err != nil ||
			!again.UpdatedAt.Equal(ended.UpdatedAt) {
			t.Errorf("UpdatedAt changed from %v to %v, %v", ended.UpdatedAt, again.UpdatedAt, err)
		}
	})
}
