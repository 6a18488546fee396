package dispatch_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// An instance is blocked, and a client's cancel of its activity is parked. No turn has processed that cancel, so the
// cancel record does not contain it. The end of the instance cancels the activity.
func TestTerminate_cancelOfAnActivityIsParked_activityIsCancelled(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: openTasksRegistry()}, func(_ context.Context, h *hub) {
		in := h.start("sleeper", 0)
		h.turn(0)
		h.turn(0) // of the child
		h.send(provider.Message{
			Kind: provider.MessageCancelActivity, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, ActivityID: 3,
		})
		broken := h.orchestrator(versions("1"), "broken")
		for range 3 {
			time.Sleep(10 * time.Minute)
			h.passRecords(broken)
		}
		if now := h.read(in); now.Status != provider.StatusBlocked {
			t.Fatalf("the instance is %s, want blocked", now.Status)
		}
		h.send(provider.Message{Kind: provider.MessageTerminate, InstanceID: in.InstanceID})
		if failed := h.passRecords(broken); len(failed) > 0 {
			t.Fatal("the termination failed without the code of the instance")
		}
		h.wantOpenTasksCancelled(in, string(perdure.ReasonOrchestrationTerminated), history.OrchestrationTerminated)
	})
}

//  1. The wake of a start is lost, and a cancel is the first message.
//  2. The first turn continues as new before it observes anything. It consumes the message, because its watermark
//     identifies the turn.
//  3. The next execution receives the cancel.
func TestR3_cancelTriggersFirstTurnThatContinuesAsNew_reachesNextExecution(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("then-waits", 2)
		_ = h.Provider.DeleteRecords(h.t.Context(), provider.QueueInbox, h.receive(h.Provider.Config().InboxURL)...)
		h.send(provider.Message{
			Kind: provider.MessageCancel, InstanceID: in.InstanceID, Reason: string(perdure.ReasonRequested),
			Text: "enough",
		})
		h.serveFor(time.Hour)
		if now := h.read(in); now.Status != provider.StatusCancelled {
			t.Errorf("the instance is %s, want cancelled", now.Status)
		}
	})
}

// The process crashes after the commit of a turn that continues as new, and before it deletes the schedules of
// cancelled timers. The redispatch deletes them.
func TestR15_crashAfterContinueAsNew_leavesNoSchedule(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddOrchestration(r, "moves-on", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		if n == 0 {
			return perdure.WaitForExternalEvent[int](ctx, "never").Await(ctx)
		}
		perdure.CreateTimer(ctx, day)
		if _, err := perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx); err != nil {
			return 0, err
		}
		return perdure.ContinueAsNew[int](ctx, n-1)
	})
	crash, crashed := crashOnce(false, func(c simaws.Call) bool { return c.Operation == "DeleteSchedule" })
	inBubble(t, simhub.Options{Registry: r, Intercept: crash}, func(_ context.Context, h *hub) {
		in := h.start("moves-on", 1)
		h.serveFor(20 * time.Minute)
		if n := h.Cloud.Schedules.Count(); n != 1 {
			t.Fatalf("got %d schedules, want 1", n)
		}
		h.raise(in, "e", 1)
		h.serveFor(20 * time.Minute)
		if n := h.Cloud.Schedules.Count(); n > 0 || !crashed.Load() {
			t.Errorf("got %d schedules, want none; crashed: %v", n, crashed.Load())
		}
	})
}

// A redispatch deletes only schedules of turns that it covers. Earlier turns have deleted their own schedules.
func TestR15_redelivery_deletesNoSchedulesOfEarlierTurns(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddOrchestration(r, "gives-up", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		var timers []*perdure.Future[time.Time]
		for range n {
			timers = append(timers, perdure.CreateTimer(ctx, day))
		}
		for {
			if _, err := perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx); err != nil {
				return 0, err
			}
			for _, f := range timers {
				f.Cancel("not needed")
			}
		}
	})
	inBubble(t, simhub.Options{Registry: r}, func(ctx context.Context, h *hub) {
		in := h.start("gives-up", 50)
		h.serveFor(20 * time.Minute)
		h.raise(in, "e", 1)
		h.serveFor(time.Minute)
		h.raise(in, "f", 1)
		h.Cloud.ResetCounts()
		records := h.receive(h.Provider.Config().InboxURL)
		h.Orchestrators[0].HandleRecords(ctx, records)
		records[0].ReceiveCount++
		if failed := h.Orchestrators[0].HandleRecords(ctx, records); len(failed) > 0 {
			t.Fatalf("got failed records %v, want none", failed)
		}
		if n := h.Cloud.Counts()["Scheduler.DeleteSchedule"]; n > 0 {
			t.Errorf("the redelivery deleted %d schedules, want none", n)
		}
	})
}

// A delayed start whose timer has a schedule is cancelled or terminated. The schedule is deleted.
func TestR15_delayedStartEndsBeforeItsDueTime_leavesNoSchedule(t *testing.T) {
	t.Parallel()
	for _, kind := range []provider.MessageKind{provider.MessageTerminate, provider.MessageCancel} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
				in, err := h.Provider.StartOrchestration(ctx, provider.Start{
					InstanceID: "i-1", Name: "nothing", Input: history.Payload("1"), StartID: "s",
					StartAt: time.Now().Add(50 * time.Hour),
				})
				if err != nil {
					t.Fatal(err)
				}
				h.serveFor(20 * time.Minute)
				if n := h.Cloud.Schedules.Count(); n != 1 {
					t.Fatalf("got %d schedules before the end, want 1", n)
				}
				h.send(provider.Message{Kind: kind, InstanceID: in.InstanceID})
				h.serveFor(time.Minute)
				h.wantNoTimer()
				h.checkIdle()
			})
		})
	}
}

// everything returns all items of an execution.
func (h *hub) everything(executionID string) (items []map[string]ddbtypes.AttributeValue) {
	h.t.Helper()
	out, err := h.Cloud.Table.Query(h.t.Context(), &dynamodb.QueryInput{
		TableName: aws.String("perdure"), ConsistentRead: aws.Bool(true),
		KeyConditionExpression: aws.String("pk = :pk"),
		ExpressionAttributeValues: map[string]ddbtypes.AttributeValue{
			":pk": &ddbtypes.AttributeValueMemberS{Value: "x#" + executionID},
		},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return out.Items
}

// wantItemsExpire fails the test unless all items of a deleted execution have a TTL.
func (h *hub) wantItemsExpire(executionID string) {
	h.t.Helper()
	for _, it := range h.everything(executionID) {
		if it["ttl"] == nil {
			h.t.Errorf("item %s %s of a deleted instance has no ttl", text(it, "pk"), text(it, "sk"))
		}
	}
}

// A worker writes no record of an activity whose instance was deleted, because nothing would read or delete it.
func TestR17_workerOfADeletedInstance_writesNoRecord(t *testing.T) {
	t.Parallel()
	for name, over := range map[string]bool{"forced deletion": false, "deletion after the end": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := registry()
			perdure.AddActivity(r, "stand", func(ctx context.Context, _ int) (int, error) {
				<-ctx.Done()
				return 0, context.Cause(ctx)
			})
			perdure.AddOrchestration(r, "guards", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
				perdure.CallActivityByName[int](ctx, "stand", 1)
				perdure.CallActivityByName[int](ctx, "stand", 2)
				return perdure.WaitForExternalEvent[int](ctx, "never").Await(ctx)
			})
			inBubble(t, simhub.Options{Registry: r}, func(ctx context.Context, h *hub) {
				in := h.start("guards", 0)
				h.turn(0)
				records := h.receive("sim://default")
				if len(records) != 2 {
					t.Fatalf("got %d records, want 2", len(records))
				}
				worker := h.worker(r)
				done := make(chan []string, 1)
				go func() { done <- worker.HandleRecords(ctx, records[:1]) }()
				time.Sleep(5 * time.Second)
				if over {
					h.send(provider.Message{Kind: provider.MessageTerminate, InstanceID: in.InstanceID})
					h.turn(0)
				}
				h.purge(in.InstanceID)
				<-done
				if failed := worker.HandleRecords(ctx, records[1:]); len(failed) > 0 {
					t.Fatalf("got failed records %v, want none", failed)
				}
				h.wantItemsExpire(in.ExecutionID)
			})
		})
	}
}

// An ID has many incarnations, each deleted before the next. Its tombstone must not grow, because an item is limited to
// 400 KB and each write costs by size.
func TestR17_idHasManyIncarnations_tombstoneStaysSmall(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		size := func() (n int) {
			for _, v := range h.item("i#i-1", "i") {
				switch v := v.(type) {
				case *ddbtypes.AttributeValueMemberSS:
					n += len(strings.Join(v.Value, ""))
				case *ddbtypes.AttributeValueMemberL:
					n += len(v.Value) * 30
				default:
				}
			}
			return n
		}
		for n := range int64(600) {
			s := provider.Start{InstanceID: "i-1", Name: "nothing", Input: history.Payload("1"), StartID: static(n, 30)}
			if _, err := h.Provider.StartOrchestration(ctx, s); err != nil {
				t.Fatal(err)
			}
			h.purge("i-1")
		}
		if n := size(); n > 10<<10 {
			t.Errorf("the tombstone has %d bytes after 600 incarnations, want at most 10 KiB", n)
		}
	})
}

// Calls to the queues hang for hours, but DynamoDB responds. Turns commit, and each delivery waits for its sends until
// its invocation ends. This does not count as a crash of the code.
func TestR13_queuesHang_nothingIsPoison(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		in := h.start("chain", 1)
		h.interfere(func(ctx context.Context, c simaws.Call, next func() error) error {
			if _, invocation := ctx.Deadline(); invocation && c.Operation == "SendMessageBatch" {
				<-ctx.Done()
				return ctx.Err()
			}
			return next()
		})
		for n := range 20 {
			records := h.receive(h.Provider.Config().InboxURL)
			invocation, stop := context.WithTimeout(ctx, 30*time.Second)
			failed := h.Orchestrators[0].HandleRecords(invocation, records)
			if len(records) != min(n+1, 2) || len(failed) != len(records) {
				t.Fatalf("got %d of %d failed records, want all", len(failed), len(records))
			}
			stop()
			if n == 0 {
				h.raise(in, "behind", 1)
			}
			time.Sleep(10 * time.Minute)
		}
		h.interfere(nil)
		if end := h.finish(in); end.Kind != history.OrchestrationCompleted {
			t.Errorf("ended with %s, want completed", end.Kind)
		}
		h.checkIdle()
	})
}

// collector returns a registry whose orchestration waits for a number of activities.
func collector(activities int, name string) *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "sleeper", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		var fs []*perdure.Future[string]
		for range activities {
			fs = append(fs, perdure.CallActivityByName[string](ctx, name, 0))
		}
		sum := 0
		for _, f := range fs {
			s, err := f.Await(ctx)
			if err != nil {
				return 0, err
			}
			sum += len(s)
		}
		return sum, nil
	})
	return r
}

// 1. An instance is blocked, and outcomes arrive that together exceed a commit. Each message is parked.
// 2. A fixed build consumes them in parts, one turn after the other.
// 3. One of these turns fails. The next delivery continues after the last committed part.
func TestR18_parkedInputsExceedACommit_areConsumedInParts(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	const many, large = 4, 900 << 10
	inBubble(t, simhub.Options{Registry: collector(many, "add")}, func(_ context.Context, h *hub) {
		in := h.start("sleeper", 0)
		h.turn(0)
		for n := range int64(many) {
			h.send(provider.Message{
				Kind: provider.MessageActivityOutcomes, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID,
				Segment: 1,
				Outcomes: []provider.ActivityOutcome{
					{ActivityID: 3 + n, Attempt: 1, Result: encoded(t, static(n, large))},
				},
			})
		}
		broken := h.orchestrator(collector(many, "plus"), "broken")
		for range 4 {
			time.Sleep(10 * time.Minute)
			h.passRecords(broken)
		}
		if now := h.read(in); now.Status != provider.StatusBlocked {
			t.Errorf("the instance is %s, want blocked", now.Status)
		}
		if left := h.receive(h.Provider.Config().InboxURL); len(left) > 0 {
			t.Errorf("got %d messages in the inbox, want none", len(left))
		}
		time.Sleep(time.Second)
		fixed := h.orchestrator(collector(many, "add"), "fixed")
		h.Renewer.Sweep(h.t.Context())
		turns := 0
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			put, ok := c.Input.(*dynamodb.TransactWriteItemsInput)
			if ok && strings.HasPrefix(text(put.TransactItems[0].Put.Item, "sk"), "h#") {
				if turns++; turns == 2 {
					return errAccess
				}
			}
			return next()
		})
		if failed := h.passRecords(fixed); len(failed) != 1 {
			t.Errorf("got %d failed messages, want the wake", len(failed))
		}
		time.Sleep(10 * time.Minute)
		if failed := h.passRecords(fixed); len(failed) > 0 || turns < 3 {
			t.Errorf("got failed messages %v in %d turns, want none in at least 3", failed, turns)
		}
		h.events(in)
		end, err := h.Provider.ReadTerminalEvent(t.Context(), in.ExecutionID)
		if err != nil || end.Kind != history.OrchestrationCompleted {
			t.Errorf("ended with %s, %v, want completed", end.Kind, err)
		}
	})
}

// The sweeper wakes instances before it recovers dead letters and continues deletions, which may use all of its time.
func TestR11_sweep_wakesBeforeOtherWork(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		h.startPending(ctx, "i-2")
		time.Sleep(3 * time.Minute)
		h.interfere(func(ctx context.Context, c simaws.Call, next func() error) error {
			if c.Operation == "ReceiveMessage" {
				<-ctx.Done()
				return ctx.Err()
			}
			return next()
		})
		look, stop := context.WithTimeout(ctx, time.Minute)
		defer stop()
		if woken, err := h.Renewer.Sweep(look); woken != 1 || err == nil {
			t.Errorf("the sweeper woke %d instances, %v; want 1 and an error", woken, err)
		}
	})
}
