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

// The worker sends the outcome and then deletes the record, or leaves the delete to the event source mapping.
// Otherwise, a crash after the delete would lose the outcome. A crash between the two may run the activity twice.
func TestR14_workerDiesAroundSendOrDelete_outcomeIsNotLost(t *testing.T) {
	t.Parallel()
	deletes := func(c simaws.Call) bool {
		in, ok := c.Input.(*sqs.DeleteMessageBatchInput)
		return ok && *in.QueueUrl == "sim://default" && c.Service != "Lambda"
	}
	sends := func(c simaws.Call) bool {
		in, ok := c.Input.(*sqs.SendMessageBatchInput)
		return ok && strings.Contains(*in.Entries[0].MessageBody, `"activityOutcomes"`)
	}
	for name, test := range map[string]struct {
		at    func(c simaws.Call) bool
		after bool
	}{
		"crash before the delete": {deletes, false}, "crash after the delete": {deletes, true},
		"crash before the send": {sends, false}, "crash after the send": {sends, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			crash, crashed := crashOnce(test.after, test.at)
			r := registry()
			perdure.AddActivity(r, "nap", func(_ context.Context, d time.Duration) (int, error) {
				time.Sleep(d)
				return 1, nil
			})
			perdure.AddOrchestration(r, "naps", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
				var fs []*perdure.Future[int]
				for i := range n {
					fs = append(fs, perdure.CallActivityByName[int](ctx, "nap", time.Duration(i)*time.Second))
				}
				return sumOf(ctx, fs)
			})
			inBubble(t, simhub.Options{Intercept: crash, Registry: r}, func(_ context.Context, h *hub) {
				in := h.start("naps", 2)
				if end := h.finish(in); string(end.Output) != "2" || !crashed.Load() {
					t.Errorf("crashed=%v: ended with %s, output %s", crashed.Load(), end.String(), end.Output)
				}
			})
		})
	}
}

// The event source mapping deletes the processed records of an invocation anyway. The worker therefore does not delete
// the last records of a batch, unless a record could be delivered again before the mapping deletes it.
func TestR14_lastRecordsOfBatch_areLeftToTheMapping(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		jobs    []job
		deletes int // by the worker
		before  int // earlier deliveries
		as      func(r *provider.Record)
	}{
		"short":             {jobs: []job{{}, {}, {}}},
		"one slow activity": {jobs: []job{{}, {Takes: time.Second}}, deletes: 1},
		"with a lease":      {jobs: []job{{Takes: time.Minute}}, deletes: 1},
		"delivered twice":   {jobs: []job{{}}, deletes: 1, before: 1},
		"exclusive key":     {jobs: []job{{}}, deletes: 1, as: func(r *provider.Record) { r.Group = "order-7" }},
		"fetched by a poller": {jobs: []job{{}}, deletes: 1, as: func(r *provider.Record) {
			r.Hold = provider.NewHold(time.Now(), time.Minute)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onJobHub(t, func(ctx context.Context, f *jobHub) {
				f.jobsOf("a", c.jobs...)
				for range c.before {
					f.receive("sim://default")
					time.Sleep(16 * time.Minute)
				}
				records, made := f.receive("sim://default"), len(f.made())
				for i := range records {
					if c.as != nil {
						c.as(&records[i])
					}
				}
				if failed := f.mapped(ctx, f.worker(nil), records); len(records) != len(c.jobs) || len(failed) > 0 {
					t.Fatalf("got %d records, failed records %v", len(records), failed)
				}
				deletes := 0
				for _, op := range f.operations(made) {
					if op == "DeleteMessageBatch" {
						deletes++
					}
				}
				if deletes != c.deletes || f.ran() != len(c.jobs) {
					t.Errorf("got %d deletes, want %d; %d ran", deletes, c.deletes, f.ran())
				}
				f.wantNoRedelivery()
			})
		})
	}
}

// Interleaving: the outcome is sent and consumed, and the delete of the mapping is lost. SQS redelivers the record. The
// activity is settled, so the worker deletes the record and does not run the activity or send an outcome.
func TestR14_mappingDeleteIsLost_activityDoesNotRunAgain(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		in := f.jobsOf("a", job{}, job{})
		if failed := f.worker(nil).HandleRecords(ctx, f.receive("sim://default")); len(failed) > 0 {
			t.Fatalf("got failed records %v", failed)
		}
		f.turn(0)
		if now, err := f.Provider.ReadInstance(ctx, in.InstanceID); err != nil ||
			now.Status != provider.StatusCompleted {
			t.Fatalf("got status %s, error %v, want Completed", now.Status, err)
		}
		time.Sleep(16 * time.Minute)
		records, made := f.receive("sim://default"), len(f.made())
		if failed := f.worker(nil).HandleRecords(ctx, records); len(records) != 2 || len(failed) > 0 || f.ran() != 2 {
			t.Errorf("got %d redelivered records, failed records %v, %d runs", len(records), failed, f.ran())
		}
		if ops := f.operations(made); slices.Contains(ops, "SendMessageBatch") ||
			!slices.Contains(ops, "DeleteMessageBatch") {
			t.Errorf("got calls %v, want a delete and no send", ops)
		}
		f.wantNoRedelivery()
	})
}

// A slow activity must not delay the outcome or the record of a fast one in its batch. Otherwise, the lease would
// expire, and the fast activity would run again.
func TestR14_slowActivityInBatch_doesNotDelayFastOne(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddActivity(r, "nap", func(ctx context.Context, d time.Duration) (string, error) {
		select {
		case <-time.After(d):
		case <-ctx.Done(): // its orchestration has ended
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
		done := make(chan []string)
		go func() { done <- h.worker(r).HandleRecords(ctx, records) }()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if failed := h.turn(0); len(failed) > 0 {
			t.Fatal(failed)
		}
		if s, err := h.Provider.ReadInstance(ctx, in.InstanceID); err != nil || s.Status != provider.StatusCompleted {
			t.Errorf("outcomes of fast activities were delayed: got status %v, error %v", s.Status, err)
		}
		messages := 0
		for _, c := range h.made() {
			if send, ok := c.Input.(*sqs.SendMessageBatchInput); ok && *send.QueueUrl == h.Provider.Config().InboxURL {
				messages += len(send.Entries)
			}
		}
		if messages != 2 { // the wake, and both fast outcomes together
			t.Errorf("got %d messages to the inbox, want 2: concurrent outcomes are one message", messages)
		}
		if failed := <-done; len(failed) > 0 {
			t.Errorf("got failed records %v", failed)
		}
	})
}

// An activity that this build does not register is soon visible again for a worker of another build.
func TestWorker_unregisteredActivity_isReleased(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		in := h.start("chain", 1)
		h.turn(0)
		if failed := h.worker(perdure.NewRegistry()).HandleRecords(ctx, h.receive("sim://default")); len(failed) != 1 {
			t.Fatalf("got failed records %v, want 1", failed)
		}
		time.Sleep(5 * time.Second)
		if items := h.workItems(); len(items) != 1 || items[0].Record.ReceiveCount != 2 || items[0].Attempt != 1 {
			t.Errorf("got work items %+v, want 1 in its second delivery", items)
		}
		h.events(in)
	})
}

// An activity may end its goroutine, like t.FailNow. The activity fails, and its batch does not hang.
func TestWorker_activityEndsItsGoroutine_fails(t *testing.T) {
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
			t.Errorf("ended with %s, error %v", end.String(), end.Error)
		}
	})
}

func TestWorker_startToCloseExpires_contextEnds(t *testing.T) {
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
		return perdure.CallActivityByName[int](ctx, "hang", n,
			perdure.WithStartToCloseTimeout(3*time.Second)).Await(ctx)
	})
	inBubble(t, simhub.Options{Registry: r}, func(_ context.Context, h *hub) {
		in := h.start("hang", 1)
		end := h.finish(in)
		if took := end.Time.Sub(in.CreatedAt); end.Kind != history.OrchestrationFailed || took != 3*time.Second {
			t.Errorf("after %v: ended with %s, cause %v", took, end.String(), cause.Load())
		}
	})
}

// A record is visible again seconds after a handled error, before the visibility timeout of minutes.
func TestR19_handledError_recordIsVisibleAgainInSeconds(t *testing.T) {
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
			t.Fatalf("got failed records %v, want 1", failed)
		}
		h.interfere(nil)
		if early := h.receive(h.Provider.Config().InboxURL); len(early) > 0 {
			t.Error("the record is visible at once: a failing turn would loop")
		}
		time.Sleep(5 * time.Second)
		if again := h.receive(h.Provider.Config().InboxURL); len(again) != 1 {
			t.Error("the record is not visible after 5 s")
		}
	})
}

// Interleaving: a batch has a fast and a slow instance. SQS locks the group of the fast instance until the invocation
// returns, so the function deletes its record earlier.
func TestR19_batchHasASlowInstance_finishedRecordsAreDeletedBefore(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		quick := h.start("nothing", 1)
		slow, err := h.Provider.StartOrchestration(ctx, provider.Start{
			InstanceID: "slow", Name: "chain", Input: encoded(t, 1), StartID: "s",
		})
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
		records := h.receive(h.Provider.Config().InboxURL)
		done := make(chan []string)
		go func() { done <- h.Orchestrators[0].HandleRecords(ctx, records) }()
		time.Sleep(time.Second)
		synctest.Wait()
		deletes := slices.Index(h.operations(0), "DeleteMessageBatch")
		close(release)
		if failed := <-done; len(records) != 2 || len(failed) > 0 || deletes < 0 {
			t.Errorf("got %d records, failed records %v, deleted early: %v", len(records), failed, deletes >= 0)
		}
		h.events(quick)
	})
}
