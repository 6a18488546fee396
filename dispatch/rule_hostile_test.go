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

// Interleaving: an instance is blocked, and a client's cancel of its activity is parked, which no turn has decided on: the cancel
// record says nothing of it. Whatever ends the instance now must cancel that activity itself.
func TestAnEndCancelsAnActivityWhoseOwnCancelIsParked(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: leaver()}, func(_ context.Context, h *hub) {
		in := h.start("sleeper", 0)
		h.turn(0)
		h.turn(0) // of the child
		h.send(provider.Message{Kind: provider.MessageCancelActivity, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, ActivityID: 3})
		broken := h.orchestrator(versions("1"), "broken")
		for range 3 {
			time.Sleep(10 * time.Minute)
			h.give(broken)
		}
		if now := h.read(in); now.Status != provider.StatusBlocked {
			t.Fatalf("the instance is %s", now.Status)
		}
		h.send(provider.Message{Kind: provider.MessageTerminate, InstanceID: in.InstanceID})
		if failed := h.give(broken); len(failed) > 0 {
			t.Fatal("it needs code to be terminated")
		}
		h.wantGivenUp(in, string(perdure.ReasonOrchestrationTerminated), history.OrchestrationTerminated)
	})
}

// Interleaving: the wake of a start is lost, and a cancel is the first message of all. The first turn continues as new before it
// could observe anything, and consumes the message that it is known by: the cancel is for the next execution.
func TestR3ACancelThatTriggersAFirstTurnIsHandedOn(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("then-waits", 2)
		_ = h.Provider.DeleteRecords(h.t.Context(), provider.QueueInbox, h.receive(h.Provider.Config().InboxURL)...)
		h.send(provider.Message{Kind: provider.MessageCancel, InstanceID: in.InstanceID, Reason: string(perdure.ReasonRequested), Text: "enough"})
		h.serveFor(time.Hour)
		if now := h.read(in); now.Status != provider.StatusCancelled {
			t.Errorf("the instance is %s: its cancel is lost", now.Status)
		}
	})
}

// Interleaving: the process dies between the commit of a turn that continues as new, and the deletion of the schedules of the
// timers that it gave up. The message that leads back to the turn deletes them.
func TestR15ACrashAfterContinueAsNewLeavesNoSchedule(t *testing.T) {
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
			t.Fatalf("%d schedules", n)
		}
		h.raise(in, "e", 1)
		h.serveFor(20 * time.Minute)
		if n := h.Cloud.Schedules.Count(); n > 0 || !crashed.Load() {
			t.Errorf("crashed: %v, and %d schedules are left", crashed.Load(), n)
		}
	})
}

// A redelivery looks no further back than what it leads back to: each schedule is deleted by the turn that cancelled its timer.
func TestR15ARedeliveryDeletesNoSchedulesOfEarlierTurns(t *testing.T) {
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
			t.Fatalf("failed %v", failed)
		}
		if n := h.Cloud.Counts()["Scheduler.DeleteSchedule"]; n > 0 {
			t.Errorf("a redelivery deleted %d schedules", n)
		}
	})
}

// The timer of a delayed start has its schedule already when the start is cancelled or terminated.
func TestR15ADelayedStartThatEndsLeavesNoSchedule(t *testing.T) {
	t.Parallel()
	for _, kind := range []provider.MessageKind{provider.MessageTerminate, provider.MessageCancel} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
				in, err := h.Provider.StartOrchestration(ctx, provider.Start{InstanceID: "i-1", Name: "nothing", Input: history.Payload("1"), StartID: "s", StartAt: time.Now().Add(50 * time.Hour)})
				if err != nil {
					t.Fatal(err)
				}
				h.serveFor(20 * time.Minute)
				if n := h.Cloud.Schedules.Count(); n != 1 {
					t.Fatalf("%d schedules: the test shows nothing", n)
				}
				h.send(provider.Message{Kind: kind, InstanceID: in.InstanceID})
				h.serveFor(time.Minute)
				h.wantNoTimer()
				h.checkRest()
			})
		})
	}
}

// everything is what lies in the table, by key.
func (h *hub) everything(executionID string) (items []map[string]ddbtypes.AttributeValue) {
	h.t.Helper()
	out, err := h.Cloud.Table.Query(h.t.Context(), &dynamodb.QueryInput{
		TableName: aws.String("perdure"), ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String("pk = :pk"),
		ExpressionAttributeValues: map[string]ddbtypes.AttributeValue{":pk": &ddbtypes.AttributeValueMemberS{Value: "x#" + executionID}},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return out.Items
}

// wantMortal fails if anything of a deleted execution stays for ever.
func (h *hub) wantMortal(executionID string) {
	h.t.Helper()
	for _, it := range h.everything(executionID) {
		if it["ttl"] == nil {
			h.t.Errorf("of a deleted instance %s %s stays for ever", text(it, "pk"), text(it, "sk"))
		}
	}
}

// What a worker would leave of an activity whose instance was deleted nobody can read, and nothing would ever delete.
func TestR17AWorkerLeavesNothingOfADeletedInstance(t *testing.T) {
	t.Parallel()
	for name, over := range map[string]bool{"deleted by force": false, "deleted once it was over": true} {
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
					t.Fatalf("%d records", len(records))
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
					t.Fatalf("failed %v", failed)
				}
				h.wantMortal(in.ExecutionID)
			})
		})
	}
}

// An id that is used again and again, each life deleted before the next, must not remember more and more: an item has 400 KB, and
// each write of it costs what it takes.
func TestR17AnIDThatIsUsedAgainAndAgainDoesNotGrow(t *testing.T) {
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
			t.Errorf("after 600 lives the tombstone takes %d bytes", n)
		}
	})
}

// Interleaving: the queues do not answer for two hours, the table does. Turns commit, and each delivery then waits for its sends until
// its invocation ends: that is no death of its code.
func TestR13QueuesThatHangPoisonNothing(t *testing.T) {
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
			if failed := h.Orchestrators[0].HandleRecords(invocation, records); len(records) != min(n+1, 2) || len(failed) != len(records) {
				t.Fatalf("%d of %d records failed", len(failed), len(records))
			}
			stop()
			if n == 0 {
				h.raise(in, "behind", 1)
			}
			time.Sleep(10 * time.Minute)
		}
		h.interfere(nil)
		if end := h.finish(in); end.Kind != history.OrchestrationCompleted {
			t.Errorf("ended with %s", end.Kind)
		}
		h.checkRest()
	})
}

// collector is a registry whose orchestration waits for so many activities of a name.
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

// Interleaving: an instance is blocked, and more comes than a commit can hold, together or at all. Each message is parked, so that no
// group is stalled; the turns that follow take what fits, one after the other. One of them dies: the next delivery goes on there.
func TestR18WhatIsTooLargeTogetherIsParkedAndTakenInParts(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	const many, large = 4, 900 << 10
	inBubble(t, simhub.Options{Registry: collector(many, "add")}, func(_ context.Context, h *hub) {
		in := h.start("sleeper", 0)
		h.turn(0)
		for n := range int64(many) {
			h.send(provider.Message{
				Kind: provider.MessageActivityOutcomes, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, Segment: 1,
				Outcomes: []provider.ActivityOutcome{{ActivityID: 3 + n, Attempt: 1, Result: encoded(t, static(n, large))}},
			})
		}
		broken := h.orchestrator(collector(many, "plus"), "broken")
		for range 4 {
			time.Sleep(10 * time.Minute)
			h.give(broken)
		}
		if now := h.read(in); now.Status != provider.StatusBlocked {
			t.Errorf("the instance is %s: it stalls its group", now.Status)
		}
		if left := h.receive(h.Provider.Config().InboxURL); len(left) > 0 {
			t.Errorf("%d messages are left", len(left))
		}
		time.Sleep(time.Second)
		mended := h.orchestrator(collector(many, "add"), "mended")
		h.Timekeeper.Sweep(h.t.Context())
		turns := 0
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if put, ok := c.Input.(*dynamodb.TransactWriteItemsInput); ok && strings.HasPrefix(text(put.TransactItems[0].Put.Item, "sk"), "h#") {
				if turns++; turns == 2 {
					return errAccess
				}
			}
			return next()
		})
		if failed := h.give(mended); len(failed) != 1 {
			t.Errorf("the wake failed %d times, want once", len(failed))
		}
		time.Sleep(10 * time.Minute)
		if failed := h.give(mended); len(failed) > 0 || turns < 3 {
			t.Errorf("failed %v in %d turns", failed, turns)
		}
		h.events(in)
		if end, err := h.Provider.ReadTerminalEvent(t.Context(), in.ExecutionID); err != nil || end.Kind != history.OrchestrationCompleted {
			t.Errorf("ended with %s, %v", end.Kind, err)
		}
	})
}

// A look into the dead letters, or a deletion, may take all the time there is: whom the watch wakes it wakes before.
func TestR11TheWatchWakesBeforeItPicksUp(t *testing.T) {
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
		if woken, err := h.Timekeeper.Sweep(look); woken != 1 || err == nil {
			t.Errorf("woke %d, %v", woken, err)
		}
	})
}
