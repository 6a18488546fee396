package dispatch_test

// A deletion runs beside everything else: no lock keeps turns, workers and other deletions out (R17). What could hurt:
//
//   - A turn that was run on the head before, in a process that was frozen meanwhile, commits afterwards: the instance lives
//     again, headless. So the fence stands in its place, and later a stub. The other way round, the turn commits first and the
//     fence comes second: it must be built anew, on what that turn scheduled, or that is never cancelled.
//   - The turn that comes first dies, or dawdles, before it sends. Its work items arrive after the end, its children's starts
//     after their cancels; what outlives the instance must be sent by the deletion.
//   - The deletion dies anywhere: with the parent not told, with half of the history erased, with the id neither free nor in use.
//     The watch goes on, and must know what was done.
//   - The instance is over and its parent not told, because whoever ended it died: after the deletion nobody could.
//   - Whoever ended it writes its status late, over the mark of the deletion: it would look over, with nothing to read.
//   - Messages arrive at a half-erased instance, with warm state that knows nothing of it.
//   - A start or a parent's cancel is delivered in between: each must be answered once, and neither revive anything.
//   - An event of the last life, delivered late, comes to the next.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

func (h *hub) purge(id string) {
	h.t.Helper()
	if err := h.Provider.DeleteInstance(h.t.Context(), id, true); err != nil {
		h.t.Fatal(err)
	}
}

// wantNone fails if there is an instance of that id.
func (h *hub) wantNone(id string) {
	h.t.Helper()
	if in, err := h.Provider.ReadInstance(h.t.Context(), id); !errors.Is(err, provider.ErrNotFound) {
		h.t.Errorf("instance %q is %s, %v", id, in.Status, err)
	}
}

// wantStubs fails unless so many segments of an execution are stubs, and none comes after.
func (h *hub) wantStubs(executionID string, n int) {
	h.t.Helper()
	for sequence := range n {
		if it := h.item("x#"+executionID, fmt.Sprintf("h#%010d", sequence)); text(it, "stub") == "" || it["ttl"] == nil || it["events"] != nil {
			h.t.Errorf("segment %d of %d is no stub: %v", sequence, n, it)
		}
	}
	if it := h.item("x#"+executionID, fmt.Sprintf("h#%010d", n)); it != nil {
		h.t.Errorf("after %d stubs there is %v", n, it)
	}
}

// wantNoRecord fails if a worker has left a record of activity #3: once the instance is erased it would stay for ever.
func (h *hub) wantNoRecord(executionID string) {
	h.t.Helper()
	if it := h.item("x#"+executionID, "a#0000000003"); it != nil {
		h.t.Errorf("a worker has left %v", it)
	}
}

// seed 000: the deletion is seen by an activity that runs, at its next poll, as a context that ends.
func TestDeletedInstanceCancelsItsActivity(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	var seen chan error
	stand := func(ctx context.Context, _ int) (int, error) {
		<-ctx.Done()
		seen <- context.Cause(ctx)
		return 0, context.Cause(ctx)
	}
	perdure.AddActivity(r, "stand", stand)
	perdure.AddOrchestration(r, "guard", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		return perdure.CallActivityByName[int](ctx, "stand", 1).Await(ctx)
	})
	inBubble(t, simhub.Options{Registry: r}, func(ctx context.Context, h *hub) {
		seen = make(chan error, 2)
		in := h.start("guard", 0)
		h.turn(0)
		worker := h.worker(r)
		over := make(chan []string, 1)
		go func() { over <- worker.HandleRecords(ctx, h.receive("sim://default")) }()
		time.Sleep(10 * time.Second)
		deleted := time.Now()
		h.purge(in.InstanceID)
		cause := <-seen
		var cancelled *perdure.CancelledError
		if !errors.As(cause, &cancelled) || cancelled.Reason != perdure.ReasonInstanceDeleted {
			t.Errorf("the activity was told %v", cause)
		}
		if took := time.Since(deleted); took > 2*time.Second {
			t.Errorf("it was told after %v", took)
		}
		if failed := <-over; len(failed) > 0 {
			t.Errorf("failed %v: what is cancelled is done with", failed)
		}
		h.serveFor(time.Hour)
		h.wantNone(in.InstanceID)
		h.wantNoRecord(in.ExecutionID)
		h.checkRest()
	})
}

// One that is still queued never runs, however long it was.
func TestAQueuedActivityOfADeletedInstanceNeverRuns(t *testing.T) {
	t.Parallel()
	ran := 0
	r := perdure.NewRegistry()
	count := func(context.Context, int) (int, error) { ran++; return ran, nil }
	perdure.AddActivity(r, "count", count)
	perdure.AddOrchestration(r, "counts", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		return perdure.CallActivityByName[int](ctx, "count", 1).Await(ctx)
	})
	inBubble(t, simhub.Options{Registry: r}, func(_ context.Context, h *hub) {
		in := h.start("counts", 0)
		h.turn(0)
		if n := len(h.workItems()); n != 1 { // received, and given back
			t.Fatalf("%d work items", n)
		}
		h.purge(in.InstanceID)
		time.Sleep(13 * 24 * time.Hour)
		h.serveFor(time.Hour)
		if ran > 0 {
			t.Error("it ran")
		}
		h.wantNoRecord(in.ExecutionID)
		h.checkRest()
	})
}

// Interleaving: the deletion has read the history; before it commits its fence, a turn commits, and dies before it sends. The
// fence is built anew: the activity that the turn scheduled is cancelled, the child too, and the detached start is sent.
func TestR17ATurnThatCommitsBeforeTheFence(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddOrchestration(r, "spreads", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		if _, err := perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx); err != nil {
			return 0, err
		}
		if _, err := perdure.StartOrchestration(ctx, "nothing", 1); err != nil {
			return 0, err
		}
		a := perdure.CallActivity(ctx, inc, 1)
		c := perdure.CallSubOrchestrationByName[int](ctx, "chain", 1)
		return 0, perdure.WhenAll(ctx, a, c)
	})
	inBubble(t, simhub.Options{Registry: r, Environments: 2}, func(ctx context.Context, h *hub) {
		in := h.start("spreads", 0)
		h.turn(0)
		h.raise(in, "e", 1)
		var raced, dying atomic.Bool
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			switch {
			case dying.Load() && c.Operation == "SendMessageBatch":
				return errors.New("died before it sent")
			case c.Operation == "TransactWriteItems" && raced.CompareAndSwap(false, true):
				dying.Store(true)
				h.turn(0)
				dying.Store(false)
			}
			return next()
		})
		h.purge(in.InstanceID)
		h.interfere(nil)
		if !raced.Load() {
			t.Fatal("there was no race")
		}
		h.wantNone(in.InstanceID)
		h.wantStubs(in.ExecutionID, 4)
		if c, _, err := h.Provider.ReadCancels(ctx, in.ExecutionID, 0); err != nil || c.Of(100).Reason != "instance_deleted" {
			t.Errorf("cancel record %+v, %v", c, err)
		}
		h.serveFor(24 * time.Hour)
		h.checkRest()
		h.wantInstances(1) // the detached one; the child was refused, since its cancel came first
	})
}

// Interleaving: warm state knows nothing of the deletion, and takes a message that was under way.
func TestR17AMessageForWarmStateOfADeletedInstance(t *testing.T) {
	t.Parallel()
	for _, midway := range []bool{false, true} {
		t.Run(fmt.Sprintf("midway=%v", midway), func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
				in := h.start("chain", 3)
				h.turn(0)
				h.workItems()
				if midway {
					h.failDeletion(in.InstanceID, func(c simaws.Call) bool { return isCommit(c, "h#0000000001") })
				} else {
					h.purge(in.InstanceID)
				}
				h.complete(in, 1, 3)
				h.raise(in, "e", 1)
				if failed := h.turn(0); len(failed) > 0 {
					t.Errorf("failed %v: what is for nobody is dropped", failed)
				}
				if n := len(h.workItems()); n > 0 {
					t.Errorf("%d work items of a deleted instance", n)
				}
				if midway {
					h.purge(in.InstanceID)
				}
				h.wantNone(in.InstanceID)
				h.wantStubs(in.ExecutionID, 3)
			})
		})
	}
}

// failDeletion begins a deletion that fails at the first call which when picks, for good.
func (h *hub) failDeletion(id string, when func(simaws.Call) bool) {
	h.t.Helper()
	var failed atomic.Bool
	h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
		if failed.Load() || when(c) {
			failed.Store(true)
			return simhub.ErrCrashed
		}
		return next()
	})
	err := h.Provider.DeleteInstance(h.t.Context(), id, true)
	h.interfere(nil)
	if !failed.Load() || err == nil {
		h.t.Fatalf("the deletion did not fail: %v, %v", failed.Load(), err)
	}
}

// Interleaving: the child's last turn is committed, and its function dies before it tells the parent. The child is deleted before
// the message comes again: the parent hears how it ended all the same.
func TestR17TheAnswerOfAnInstanceWhoseFunctionDied(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		m := startMessage(h, "c", "s1")
		m.Name = "nothing"
		h.send(m)
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if c.Operation == "SendMessageBatch" {
				return simhub.ErrCrashed
			}
			return next()
		})
		if failed := h.turn(0); len(failed) != 1 {
			t.Fatalf("failed %v", failed)
		}
		h.interfere(nil)
		h.purge("c")
		h.wantTold("childOutcome")
		time.Sleep(10 * time.Minute)
		if failed := h.turn(0); len(failed) > 0 { // its start again
			t.Errorf("failed %v", failed)
		}
		h.wantTold("childOutcome " + history.TypeOutcomeLost) // behind the first, and dropped
		h.wantNone("c")
	})
}

// Interleaving: the start of an instance is delivered again while that is being deleted: it is answered by the deletion alone.
func TestR17AStartThatIsDeliveredAgainMidway(t *testing.T) {
	t.Parallel()
	for name, midway := range map[string]struct {
		when func(simaws.Call) bool
		told []string
	}{
		"before it is sent": {func(c simaws.Call) bool { return c.Operation == "SendMessageBatch" }, []string{"childOutcome terminated"}},
		"half erased":       {func(c simaws.Call) bool { return isCommit(c, "h#0000000001") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
				h.send(startMessage(h, "c", "s1"))
				records := h.receive("sim://inbox.fifo")
				h.Orchestrators[0].HandleRecords(ctx, records) // dies before its records are deleted
				h.workItems()
				h.failDeletion("c", midway.when)
				h.told()
				time.Sleep(10 * time.Minute)
				if failed := h.turn(0); len(failed) > 0 {
					t.Errorf("failed %v", failed)
				}
				h.wantTold(midway.told...) // as the fence says it, by whoever comes first: never that the id is in use
				h.purge("c")
				h.wantNone("c")
			})
		})
	}
}

// Interleaving: a parent cancels a child that is half erased: it is answered at once, not when the deletion is finished.
func TestR17AParentsCancelMidway(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		h.send(startMessage(h, "c", "s1"))
		h.turn(0)
		h.failDeletion("c", func(c simaws.Call) bool { return isCommit(c, "h#0000000001") })
		h.told()
		time.Sleep(10 * time.Minute)
		h.send(cancelMessage("c", "s1"))
		if failed := h.turn(0); len(failed) > 0 {
			t.Errorf("failed %v", failed)
		}
		h.wantTold("childOutcome cancelled")
		if s := h.read(provider.Instance{InstanceID: "c"}).Status; s != provider.StatusDeleting {
			t.Errorf("the child is %s", s)
		}
		h.purge("c")
		h.send(startMessage(h, "c", "s1"))
		h.turn(0)
		h.wantNone("c")
	})
}

// An event of the last life is delivered again, because the function that consumed it died, when the id has a new one.
func TestR3AnEventOfTheLastLifeIsDropped(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		in := h.start("sums", 0)
		h.turn(0)
		h.raise(in, "old", 100)
		h.Orchestrators[0].HandleRecords(ctx, h.receive("sim://inbox.fifo")) // dies before its record is deleted
		h.purge(in.InstanceID)
		next, err := h.Provider.StartOrchestration(ctx, provider.Start{InstanceID: in.InstanceID, Name: "sums", Input: encoded(t, 0), StartID: "start-2"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		h.turn(0)
		h.raise(next, "new", 1)
		h.raise(next, "end", 0)
		if end := h.finish(next); string(end.Output) != "1" {
			t.Errorf("the next life ended with %s, want the sum of its own events", end.Output)
		}
	})
}

// The timer's schedule goes with its instance, also that of a start with delay.
func TestR17TheSchedulesOfADeletedInstanceGo(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		in := h.start("waits-a-day", 0)
		later, err := h.Provider.StartOrchestration(ctx, provider.Start{
			InstanceID: "later", Name: "nothing", Input: encoded(t, 0), StartID: "later", StartAt: time.Now().Add(24 * time.Hour),
		})
		if err != nil {
			t.Fatal(err)
		}
		h.serveFor(time.Hour)
		for left, id := range []string{later.InstanceID, in.InstanceID} {
			if n := h.Cloud.Schedules.Count(); n != 2-left {
				t.Fatalf("%d schedules before %s is deleted", n, id)
			}
			h.purge(id)
		}
		if n := h.Cloud.Schedules.Count(); n != 0 {
			t.Errorf("%d schedules are left", n)
		}
		h.serveFor(48 * time.Hour)
		h.checkRest()
		h.wantInstances(0)
	})
}

// A segment is missing, as in a table that was restored. A function that was frozen before the purge could commit there.
func TestR17_historyWithAGap_purgeFillsTheGap(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("fan", 1)
		for n := range 5 {
			h.raise(in, fmt.Sprint("e-", n), n)
			h.turn(0)
		}
		for _, sequence := range []int{1, 3} {
			h.deleteItem("x#"+in.ExecutionID, fmt.Sprintf("h#%010d", sequence))
		}
		h.purge(in.InstanceID)
		h.wantStubs(in.ExecutionID, 7)
	})
}

// What is left of an instance are places, each for a month: no payload, nothing that is listed.
func TestR17WhatIsLeftOfADeletedInstance(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		in := h.start("fan", 2000) // a turn of several parts
		h.turn(0)
		for _, sk := range []string{"a#3", "p#4", "r#1"} { // what workers, and a release to come, keep beside
			if _, err := h.Cloud.Table.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("perdure"), Item: map[string]ddbtypes.AttributeValue{
				"pk": &ddbtypes.AttributeValueMemberS{Value: "x#" + in.ExecutionID}, "sk": &ddbtypes.AttributeValueMemberS{Value: sk},
			}}); err != nil {
				t.Fatal(err)
			}
		}
		h.raise(in, "secret", 1)
		h.turn(0)
		h.purge(in.InstanceID)
		out, err := h.Cloud.Table.Query(ctx, &dynamodb.QueryInput{
			TableName: aws.String("perdure"), KeyConditionExpression: aws.String("pk = :pk"),
			ExpressionAttributeValues: map[string]ddbtypes.AttributeValue{":pk": &ddbtypes.AttributeValueMemberS{Value: "x#" + in.ExecutionID}},
		})
		if err != nil {
			t.Fatal(err)
		}
		month := time.Now().Add(28 * 24 * time.Hour).Unix()
		for _, it := range append(out.Items, h.item("i#"+in.InstanceID, "i")) {
			ttl, _ := it["ttl"].(*ddbtypes.AttributeValueMemberN)
			until := int64(0)
			if ttl != nil {
				until, _ = strconv.ParseInt(ttl.Value, 10, 64)
			}
			if sk := text(it, "sk"); until < month || sk != "c" && sk != "i" && len(it) != 4 || it["gs"] != nil || it["attention"] != nil {
				t.Errorf("left is %v", it)
			}
		}
		if h.wantStubs(in.ExecutionID, 4); len(out.Items) != 5 {
			t.Errorf("%d items are left of the execution, want four stubs and the cancel record", len(out.Items))
		}
	})
}

// doomed is a family whose middle one is to be deleted: it has a parent, a history of two executions, a child, and a timer.
func doomed() *perdure.Registry {
	r := registry()
	perdure.AddOrchestration(r, "grandparent", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		_, err := perdure.CallSubOrchestrationByName[int](ctx, "middle", 1, perdure.WithInstanceID("middle")).Await(ctx)
		var failed *perdure.SubOrchestrationError
		if !errors.As(err, &failed) {
			return "", errors.New("the child was not deleted")
		}
		return failed.Type + ": " + failed.Message, nil
	})
	perdure.AddOrchestration(r, "middle", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		if n > 0 {
			if _, err := perdure.StartOrchestration(ctx, "nothing", 1); err != nil {
				return 0, err
			}
			return perdure.ContinueAsNew[int](ctx, n-1)
		}
		day := perdure.CreateTimer(ctx, 24*time.Hour)
		c := perdure.CallSubOrchestrationByName[string](ctx, "waits-a-day", 0, perdure.WithInstanceID("grandchild"))
		if _, err := perdure.CallActivity(ctx, inc, 1).Await(ctx); err != nil {
			return 0, err
		}
		return 0, perdure.WhenAll(ctx, day, c)
	})
	return r
}

// checkDoomed fails unless the deletion of the middle one has left what it should, and the hub is at rest.
func (h *hub) checkDoomed(what string, in provider.Instance, past []string) {
	h.t.Helper()
	end, err := h.Provider.ReadTerminalEvent(h.t.Context(), in.ExecutionID)
	if err != nil || !strings.HasSuffix(string(end.Output), `: deleted"`) {
		h.t.Errorf("%s: the parent ended with %s %s, %v", what, end.Kind, end.Output, err)
	}
	h.wantNone("middle")
	for _, x := range past {
		if it := h.item("x#"+x, "h#0000000000"); text(it, "stub") == "" {
			h.t.Errorf("%s: execution %s is still there: %v", what, x, it)
		}
	}
	if s := h.read(provider.Instance{InstanceID: "grandchild"}).Status; s != provider.StatusCancelled {
		h.t.Errorf("%s: the child is %s", what, s)
	}
	h.wantInstances(3) // the parent, the child and the detached one
	if err := h.CheckRest(h.t.Context()); err != nil {
		h.t.Errorf("%s: %v", what, err)
	}
}

// deleteDoomed lets the family settle, deletes the middle one through del, and lets the hub, and its watch, finish.
func (h *hub) deleteDoomed(ctx context.Context, what string, del func(c *client.Client) error) {
	h.t.Helper()
	in := h.start("grandparent", 0)
	h.serveFor(time.Hour)
	var past []string
	for x, err := range h.Provider.ListExecutions(ctx, "middle") {
		if err != nil {
			h.t.Fatal(err)
		}
		past = append(past, x.ExecutionID)
	}
	if len(past) != 2 {
		h.t.Fatalf("%d executions to be deleted, want 2", len(past))
	}
	if err := del(client.New(h.Provider)); err != nil {
		h.serveFor(3 * time.Minute)
		if _, err := h.Timekeeper.Sweep(ctx); err != nil {
			h.t.Errorf("%s: watch: %v", what, err)
		}
	}
	h.serveFor(48 * time.Hour)
	if in, err := h.Provider.ReadInstance(ctx, "middle"); err == nil && in.Status != provider.StatusDeleting {
		if err := h.Provider.DeleteInstance(ctx, "middle", true); err != nil { // the call that was to begin it did nothing
			h.t.Errorf("%s: %v", what, err)
		}
		h.serveFor(48 * time.Hour)
	}
	h.checkDoomed(what, in, past)
}

// Whoever deletes dies before or after the n-th AWS call, for every n there is: the watch finishes what was begun.
func TestR17ACrashAtAnyCallOfADeletion(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("after=%v", after), func(t *testing.T) {
			t.Parallel()
			for n, more := int64(1), true; more; n++ {
				inBubble(t, simhub.Options{Registry: doomed()}, func(ctx context.Context, h *hub) {
					what := fmt.Sprintf("crash at call %d", n)
					h.deleteDoomed(ctx, what, func(c *client.Client) error {
						var calls atomic.Int64
						h.interfere(func(_ context.Context, _ simaws.Call, next func() error) error {
							call := calls.Add(1)
							if call > n || call == n && !after {
								return simhub.ErrCrashed
							}
							err := next()
							if call == n {
								return simhub.ErrCrashed
							}
							return err
						})
						err := c.Purge(ctx, "middle", client.Force())
						h.interfere(nil)
						more = calls.Load() >= n
						return err
					})
				})
			}
		})
	}
}

// Interleaving: two delete it at once. At the n-th call of the one the other does all there is to do, and the id gets its next
// life. The one who comes late finds that it is done, and leaves that life alone.
func TestR17TwoDeletionsAtOnce(t *testing.T) {
	t.Parallel()
	for n, more := int64(2), true; more; n++ { // at the first it has not seen which life it is to delete
		inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
			old := h.start("then-waits", 1)
			h.turn(0)
			var next provider.Instance
			var calls atomic.Int64
			var overtaken atomic.Bool
			h.interfere(func(_ context.Context, _ simaws.Call, proceed func() error) error {
				if !overtaken.Load() && calls.Add(1) == n {
					overtaken.Store(true)
					h.purge(old.InstanceID)
					next, _ = h.Provider.StartOrchestration(ctx, provider.Start{InstanceID: old.InstanceID, Name: "then-waits", Input: encoded(t, 1), StartID: "next"})
					h.turn(0)
				}
				return proceed()
			})
			err := h.Provider.DeleteInstance(ctx, old.InstanceID, true)
			h.interfere(nil)
			if more = overtaken.Load(); err != nil {
				t.Errorf("the one overtaken at call %d: %v", n, err)
			}
			if !more {
				return
			}
			if now := h.read(next); now.StartID != "next" || now.Status != provider.StatusRunning {
				t.Fatalf("overtaken at call %d it left the next life %s, of start %q", n, now.Status, now.StartID)
			}
			h.raise(next, "one", 1)
			h.raise(next, "two", 2)
			if end := h.finish(next); string(end.Output) != "3" {
				t.Errorf("overtaken at call %d: the next life ended with %s", n, end.String())
			}
			h.checkRest()
		})
	}
}

// Interleaving: the watch reads, of an index that is behind, that a deletion stays; it is finished, and the id has another life:
// that is over already, or begun after a second look.
func TestTheWatchLeavesTheNextLifeAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		after, life string
		want        provider.RuntimeStatus
	}{"over": {"Query", "nothing", provider.StatusCompleted}, "running": {"GetItem", "chain", provider.StatusRunning}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
				in := h.start("chain", 3)
				h.turn(0)
				h.failDeletion(in.InstanceID, func(c simaws.Call) bool { return isCommit(c, "h#0000000001") })
				time.Sleep(10 * time.Minute)
				var lives atomic.Bool
				h.interfere(func(_ context.Context, call simaws.Call, next func() error) error {
					err := next()
					if call.Operation == c.after && h.looksForDeletions() && lives.CompareAndSwap(false, true) {
						h.purge(in.InstanceID)
						_, startErr := h.Provider.StartOrchestration(ctx, provider.Start{InstanceID: in.InstanceID, Name: c.life, Input: encoded(t, 1), StartID: "next"})
						h.turn(0)
						return errors.Join(err, startErr)
					}
					return err
				})
				_, err := h.Timekeeper.Sweep(ctx)
				h.interfere(nil)
				if now := h.read(in); now.StartID != "next" || now.Status != c.want || !lives.Load() || err != nil {
					t.Errorf("the next life is %s, begun: %v, %v", now.Status, lives.Load(), err)
				}
			})
		})
	}
}

// looksForDeletions reports whether the watch has come to them.
func (h *hub) looksForDeletions() bool {
	return slices.ContainsFunc(h.made(), func(c simaws.Call) bool {
		q, ok := c.Input.(*dynamodb.QueryInput)
		return ok && text(q.ExpressionAttributeValues, ":kind") == "deleting"
	})
}

// The watch waits two minutes before it takes a deletion for abandoned, and says nothing when there is none.
func TestTheWatchFinishesADeletion(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		in := h.start("chain", 3)
		h.turn(0)
		h.failDeletion(in.InstanceID, func(c simaws.Call) bool {
			_, sends := c.Input.(*sqs.SendMessageBatchInput)
			return !sends && isCommit(c, "h#0000000001")
		})
		for _, watch := range []struct {
			after time.Duration
			want  provider.RuntimeStatus
		}{{time.Minute, provider.StatusDeleting}, {2 * time.Minute, ""}, {time.Hour, ""}} {
			time.Sleep(watch.after)
			if _, err := h.Timekeeper.Sweep(ctx); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			if now, _ := h.Provider.ReadInstance(ctx, in.InstanceID); now.Status != watch.want {
				t.Errorf("after another %v it is %q, want %q", watch.after, now.Status, watch.want)
			}
		}
		h.wantStubs(in.ExecutionID, 3)
	})
}
