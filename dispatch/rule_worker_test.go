package dispatch_test

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

func (h *hub) worker(r *perdure.Registry) *dispatch.Worker {
	return must(dispatch.NewWorker(r, h.Provider, nil))
}

// Interleaving: the record is deleted first, and the process dies: the outcome is lost and the future never settles. So the
// outcome is sent, then the record deleted; a crash between runs the activity twice.
func TestR14TheOutcomeIsSentBeforeTheRecordIsDeleted(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]bool{"dies before the delete": false, "dies after it": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			crash, crashed := crashOnce(after, func(c simaws.Call) bool {
				in, del := c.Input.(*sqs.DeleteMessageBatchInput)
				return del && *in.QueueUrl == "sim://default"
			})
			inBubble(t, simhub.Options{Intercept: crash}, func(_ context.Context, h *hub) {
				in := h.start("chain", 2)
				if end := h.finish(in); string(end.Output) != "2" || !crashed.Load() {
					t.Errorf("crashed: %v, ended with %s", crashed.Load(), end.String())
				}
			})
		})
	}
}

// A slow activity in a batch must hold back neither the outcome nor the record of a fast one: its lock would run out, and it
// would run again.
func TestR14AFastActivityIsDoneWhileASlowOneOfItsBatchRuns(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddActivity(r, "nap", func(ctx context.Context, d time.Duration) (string, error) {
		select {
		case <-time.After(d):
		case <-ctx.Done(): // its orchestration is over
		}
		return d.String(), nil
	})
	perdure.AddOrchestration(r, "naps", func(ctx *perdure.OrchestrationContext, ds []time.Duration) (int, error) {
		var fs []perdure.Awaitable
		for _, d := range ds {
			fs = append(fs, perdure.CallActivityByName[string](ctx, "nap", d))
		}
		return perdure.WhenAny(ctx, fs...)
	})
	inBubble(t, simhub.Options{Registry: r}, func(ctx context.Context, h *hub) {
		in := h.start("naps", []time.Duration{time.Hour, time.Second, time.Second})
		h.turn(0)
		records := h.receive("sim://default")
		over := make(chan []string)
		go func() { over <- h.worker(r).HandleRecords(ctx, records) }()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if failed := h.turn(0); len(failed) > 0 {
			t.Fatal(failed)
		}
		if s, err := h.Provider.ReadInstance(ctx, in.InstanceID); err != nil || s.Status != provider.StatusCompleted {
			t.Errorf("the fast outcomes were held back: %v, %v", s.Status, err)
		}
		messages := 0
		for _, c := range h.made() {
			if send, ok := c.Input.(*sqs.SendMessageBatchInput); ok && *send.QueueUrl == h.Provider.Hub().InboxURL {
				messages += len(send.Entries)
			}
		}
		if messages != 2 { // the wake, and both fast outcomes together
			t.Errorf("%d messages to the inbox, want 2: outcomes of a moment go as one message", messages)
		}
		if failed := <-over; len(failed) > 0 {
			t.Errorf("failed %v", failed)
		}
	})
}

// What this build cannot run goes back to the queue soon, for a worker of another build.
func TestAnUnregisteredActivityGoesBackToTheQueue(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		in := h.start("chain", 1)
		h.turn(0)
		if failed := h.worker(perdure.NewRegistry()).HandleRecords(ctx, h.receive("sim://default")); len(failed) != 1 {
			t.Fatalf("failed %v", failed)
		}
		time.Sleep(5 * time.Second)
		if items := h.workItems(); len(items) != 1 || items[0].Record.ReceiveCount != 2 || items[0].Attempt != 1 {
			t.Errorf("got %+v", items)
		}
		h.events(in)
	})
}

// An activity may end its goroutine, as t.FailNow does in a test: that is a failure of the activity, not a batch that hangs.
func TestAnActivityThatEndsItsGoroutineFails(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "vanish", func(context.Context, int) (int, error) {
		runtime.Goexit()
		return 0, nil
	})
	perdure.AddOrchestration(r, "vanish", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		return perdure.CallActivityByName[int](ctx, "vanish", n).Await(ctx)
	})
	inBubble(t, simhub.Options{Registry: r}, func(_ context.Context, h *hub) {
		end := h.finish(h.start("vanish", 1))
		if end.Kind != history.OrchestrationFailed || !strings.Contains(end.Error.Message, "Goexit") {
			t.Errorf("ended with %s %v", end.String(), end.Error)
		}
	})
}

func TestStartToCloseEndsTheActivitysContext(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	var cause atomic.Value
	hang := func(ctx context.Context, _ int) (int, error) {
		<-ctx.Done()
		cause.Store(context.Cause(ctx).Error())
		return 0, context.Cause(ctx)
	}
	perdure.AddActivity(r, "hang", hang)
	perdure.AddOrchestration(r, "hang", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		return perdure.CallActivityByName[int](ctx, "hang", n, perdure.WithStartToClose(3*time.Second)).Await(ctx)
	})
	inBubble(t, simhub.Options{Registry: r}, func(_ context.Context, h *hub) {
		in := h.start("hang", 1)
		end := h.finish(in)
		if took := end.Time.Sub(in.CreatedAt); end.Kind != history.OrchestrationFailed || took != 3*time.Second {
			t.Errorf("after %v: %s, cause %v", took, end.String(), cause.Load())
		}
	})
}

// A handled error is tried again in seconds; the queue's visibility alone would make it minutes.
func TestR19AHandledErrorIsVisibleAgainInSeconds(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: perdure.NewRegistry()}, func(ctx context.Context, h *hub) {
		in := provider.Message{Kind: provider.MessageWake, InstanceID: "i-1", ExecutionID: "x"}
		_ = h.Provider.EnqueueForOrchestrator(ctx, in)
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if c.Operation == "Query" {
				return context.DeadlineExceeded
			}
			return next()
		})
		if failed := h.turn(0); len(failed) != 1 {
			t.Fatalf("failed %v", failed)
		}
		h.interfere(nil)
		if early := h.receive(h.Provider.Hub().InboxURL); len(early) > 0 {
			t.Error("visible again at once: a failing turn would spin")
		}
		time.Sleep(5 * time.Second)
		if again := h.receive(h.Provider.Hub().InboxURL); len(again) != 1 {
			t.Error("not visible again after 5 s")
		}
	})
}

// Interleaving: a batch holds two instances, one done at once, the other slow. Until the invocation returns the first one's
// group is locked, so the function deletes its record itself.
func TestR19FinishedRecordsAreDeletedWhileTheInvocationLives(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		quick := h.start("nothing", 1)
		slow, err := h.Provider.StartOrchestration(ctx, provider.Start{InstanceID: "slow", Name: "chain", Input: encoded(t, 1), StartID: "s"})
		if err != nil {
			t.Fatal(err)
		}
		release := make(chan struct{})
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if put, ok := c.Input.(*dynamodb.PutItemInput); ok && text(put.Item, "pk") == "x#"+slow.ExecutionID {
				<-release
			}
			return next()
		})
		records := h.receive(h.Provider.Hub().InboxURL)
		over := make(chan []string)
		go func() { over <- h.Orchestrators[0].HandleRecords(ctx, records) }()
		time.Sleep(time.Second)
		synctest.Wait()
		deletes := slices.Index(h.operations(0), "DeleteMessageBatch")
		close(release)
		if failed := <-over; len(records) != 2 || len(failed) > 0 || deletes < 0 {
			t.Errorf("%d records, failed %v, deleted early: %v", len(records), failed, deletes >= 0)
		}
		h.events(quick)
	})
}
