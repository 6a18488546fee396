package dispatch_test

// No lock protects a deletion from concurrent turns, workers and other deletions (R17). These cases could break it:
//
//   - A frozen process commits a turn on an earlier head after the deletion. The deletion's end, and later its stub,
//     takes the position of that turn.
//   - A turn commits before the deletion's end. The deletion then also cancels the tasks of that turn.
//   - The process of the turn before the end crashes or is slow before it sends its outputs. Its work items arrive
//     after the end, and starts of its children arrive after their cancels. The deletion sends outputs that outlive the
//     instance.
//   - The process of the deletion crashes: before the parent is notified, with half of the history erased, or before
//     the ID can be used. The sweeper continues it.
//   - The instance has ended, and the process that ended it crashed before it notified the parent.
//   - The process that ended the instance writes its status late. It must not overwrite the status Deleting.
//   - Messages arrive for a partially erased instance that is still in a cache.
//   - A start or a parent's cancel arrives during the deletion. Each has one response, and the instance does not start
//     again.
//   - An event of an earlier incarnation arrives late.

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

// purge deletes an instance, even if it is running.
func (h *hub) purge(id string) {
	h.t.Helper()
	if err := h.Provider.DeleteInstance(h.t.Context(), id, true); err != nil {
		h.t.Fatal(err)
	}
}

// wantNone fails the test if the instance exists.
func (h *hub) wantNone(id string) {
	h.t.Helper()
	if in, err := h.Provider.ReadInstance(h.t.Context(), id); !errors.Is(err, provider.ErrNotFound) {
		h.t.Errorf("instance %q is %s, %v, want ErrNotFound", id, in.Status, err)
	}
}

// wantStubs fails the test unless the first n segments of an execution are stubs, and no segment follows.
func (h *hub) wantStubs(executionID string, n int) {
	h.t.Helper()
	for sequence := range n {
		it := h.item("x#"+executionID, fmt.Sprintf("h#%010d", sequence))
		if text(it, "stub") == "" || it["ttl"] == nil || it["events"] != nil {
			h.t.Errorf("segment %d of %d is not a stub: %v", sequence, n, it)
		}
	}
	if it := h.item("x#"+executionID, fmt.Sprintf("h#%010d", n)); it != nil {
		h.t.Errorf("got segment %v after %d stubs, want none", it, n)
	}
}

// wantNoRecord fails the test if a worker has written a record of activity #3. Nothing would remove it after the
// erasure.
func (h *hub) wantNoRecord(executionID string) {
	h.t.Helper()
	if it := h.item("x#"+executionID, "a#0000000003"); it != nil {
		h.t.Errorf("got activity record %v, want none", it)
	}
}

// A running activity observes the deletion of its instance at its next poll.
func TestDeletion_activityRuns_isCancelled(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	var seen chan error
	block := func(ctx context.Context, _ int) (int, error) {
		<-ctx.Done()
		seen <- context.Cause(ctx)
		return 0, context.Cause(ctx)
	}
	perdure.AddActivity(r, "stand", block)
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
			t.Errorf("got cause %v, want the deletion of the instance", cause)
		}
		if took := time.Since(deleted); took > 2*time.Second {
			t.Errorf("the activity observed the deletion after %v, want at most 2s", took)
		}
		if failed := <-over; len(failed) > 0 {
			t.Errorf("got failed records %v, want none", failed)
		}
		h.serveFor(time.Hour)
		h.wantNone(in.InstanceID)
		h.wantNoRecord(in.ExecutionID)
		h.checkIdle()
	})
}

// A queued activity of a deleted instance never runs.
func TestDeletion_activityIsQueued_neverRuns(t *testing.T) {
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
		if n := len(h.workItems()); n != 1 { // its visibility timeout expires later
			t.Fatalf("got %d work items, want 1", n)
		}
		h.purge(in.InstanceID)
		time.Sleep(13 * 24 * time.Hour)
		h.serveFor(time.Hour)
		if ran > 0 {
			t.Errorf("the activity ran %d times, want 0", ran)
		}
		h.wantNoRecord(in.ExecutionID)
		h.checkIdle()
	})
}

//  1. A deletion reads the history.
//  2. A turn commits and crashes before it sends its outputs.
//  3. The deletion's transaction conflicts. The deletion reads again, cancels the activity and the child of the turn,
//     and sends its detached start.
func TestR17_turnCommitsDuringDeletion_deletionCancelsItsTasks(t *testing.T) {
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
		var raced, crashing atomic.Bool
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			switch {
			case crashing.Load() && c.Operation == "SendMessageBatch":
				return errors.New("crashed before the send")
			case c.Operation == "TransactWriteItems" && raced.CompareAndSwap(false, true):
				crashing.Store(true)
				h.turn(0)
				crashing.Store(false)
			}
			return next()
		})
		h.purge(in.InstanceID)
		h.interfere(nil)
		if !raced.Load() {
			t.Fatal("no turn committed during the deletion")
		}
		h.wantNone(in.InstanceID)
		h.wantStubs(in.ExecutionID, 4)
		cancels, _, err := h.Provider.ReadCancels(ctx, in.ExecutionID, 0)
		if err != nil || cancels.Of(100).Reason != "instance_deleted" {
			t.Errorf("got cancel record %+v, %v, want instance_deleted", cancels, err)
		}
		h.serveFor(24 * time.Hour)
		h.checkIdle()
		h.wantInstances(1) // the detached one; the start of the child arrives after its cancel and is refused
	})
}

// A session with a warm instance processes a message after the instance was deleted.
func TestR17_messageForAWarmInstance_isDropped(t *testing.T) {
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
					t.Errorf("got failed messages %v, want none: the session drops them", failed)
				}
				if n := len(h.workItems()); n > 0 {
					t.Errorf("got %d work items of a deleted instance, want none", n)
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

// failDeletion starts a deletion that crashes at the first call for which when returns true.
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
		h.t.Fatalf("the deletion did not fail: crash reached: %v, error %v", failed.Load(), err)
	}
}

// 1. A session commits the last turn of a child and crashes before it notifies the parent.
// 2. The child is deleted. The deletion sends the outcome to the parent.
// 3. SQS redelivers the message.
func TestR17_childEndedWithoutNotifying_deletionNotifiesTheParent(t *testing.T) {
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
			t.Fatalf("got failed messages %v, want 1", failed)
		}
		h.interfere(nil)
		h.purge("c")
		h.wantParentMessages("childOutcome")
		time.Sleep(10 * time.Minute)
		if failed := h.turn(0); len(failed) > 0 { // processes the redelivered start
			t.Errorf("got failed messages %v, want none", failed)
		}
		h.wantParentMessages("childOutcome " +
			history.TypeOutcomeLost) // arrives after the outcome, so the parent drops it
		h.wantNone("c")
	})
}

// SQS redelivers the start of an instance during its deletion. The parent receives at most the end that the deletion
// has written. It never receives a rejection because the ID is in use.
func TestR17_startIsRedeliveredDuringDeletion_parentReceivesNoRefusal(t *testing.T) {
	t.Parallel()
	for name, midway := range map[string]struct {
		when    func(simaws.Call) bool
		answers []string
	}{
		"before the outputs are sent": {
			func(c simaws.Call) bool { return c.Operation == "SendMessageBatch" }, []string{"childOutcome terminated"},
		},
		"during the erasure": {func(c simaws.Call) bool { return isCommit(c, "h#0000000001") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
				h.send(startMessage(h, "c", "s1"))
				records := h.receive("sim://inbox.fifo")
				h.Orchestrators[0].HandleRecords(ctx, records) // crashes before it deletes the records
				h.workItems()
				h.failDeletion("c", midway.when)
				h.drainInbox()
				time.Sleep(10 * time.Minute)
				if failed := h.turn(0); len(failed) > 0 {
					t.Errorf("got failed messages %v, want none", failed)
				}
				h.wantParentMessages(midway.answers...) // no response reports that the ID is in use
				h.purge("c")
				h.wantNone("c")
			})
		})
	}
}

// A parent cancels a child during the erasure of the child. The parent receives a response immediately.
func TestR17_parentCancelsDuringTheDeletion_receivesAResponse(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		h.send(startMessage(h, "c", "s1"))
		h.turn(0)
		h.failDeletion("c", func(c simaws.Call) bool { return isCommit(c, "h#0000000001") })
		h.drainInbox()
		time.Sleep(10 * time.Minute)
		h.send(cancelMessage("c", "s1"))
		if failed := h.turn(0); len(failed) > 0 {
			t.Errorf("got failed messages %v, want none", failed)
		}
		h.wantParentMessages("childOutcome cancelled")
		if s := h.read(provider.Instance{InstanceID: "c"}).Status; s != provider.StatusDeleting {
			t.Errorf("the child is %s, want deleting", s)
		}
		h.purge("c")
		h.send(startMessage(h, "c", "s1"))
		h.turn(0)
		h.wantNone("c")
	})
}

// A session consumes an event and crashes. The instance is purged and started again. The redelivered event is dropped.
func TestR3_redeliveredEventOfEarlierIncarnation_isDropped(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		in := h.start("sums", 0)
		h.turn(0)
		h.raise(in, "old", 100)
		h.Orchestrators[0].HandleRecords(ctx, h.receive("sim://inbox.fifo")) // crashes before it deletes the record
		h.purge(in.InstanceID)
		next, err := h.Provider.StartOrchestration(ctx, provider.Start{
			InstanceID: in.InstanceID, Name: "sums", Input: encoded(t, 0), StartID: "start-2",
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		h.turn(0)
		h.raise(next, "new", 1)
		h.raise(next, "end", 0)
		if end := h.finish(next); string(end.Output) != "1" {
			t.Errorf("the later incarnation ended with %s, want the sum of its own events", end.Output)
		}
	})
}

// A deletion removes the EventBridge schedules of timers and of delayed starts.
func TestR17_deletion_removesSchedules(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		in := h.start("waits-a-day", 0)
		later, err := h.Provider.StartOrchestration(ctx, provider.Start{
			InstanceID: "later", Name: "nothing", Input: encoded(t, 0), StartID: "later",
			StartAt: time.Now().Add(24 * time.Hour),
		})
		if err != nil {
			t.Fatal(err)
		}
		h.serveFor(time.Hour)
		for left, id := range []string{later.InstanceID, in.InstanceID} {
			if n := h.Cloud.Schedules.Count(); n != 2-left {
				t.Fatalf("got %d schedules before the deletion of %s, want %d", n, id, 2-left)
			}
			h.purge(id)
		}
		if n := h.Cloud.Schedules.Count(); n != 0 {
			t.Errorf("got %d schedules, want none", n)
		}
		h.serveFor(48 * time.Hour)
		h.checkIdle()
		h.wantInstances(0)
	})
}

// A segment is missing, as in a restored table. A frozen function could commit at that position, so the purge fills it.
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

// A deleted instance leaves only markers of a month, without payloads and without index entries.
func TestR17_deletion_leavesOnlyMarkers(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		in := h.start("fan", 2000) // the first turn has several parts
		h.turn(0)
		for _, sk := range []string{"a#3", "p#4", "r#1"} { // items of workers, and of future releases
			item := map[string]ddbtypes.AttributeValue{
				"pk": &ddbtypes.AttributeValueMemberS{Value: "x#" + in.ExecutionID},
				"sk": &ddbtypes.AttributeValueMemberS{Value: sk},
			}
			put := &dynamodb.PutItemInput{TableName: aws.String("perdure"), Item: item}
			if _, err := h.Cloud.Table.PutItem(ctx, put); err != nil {
				t.Fatal(err)
			}
		}
		h.raise(in, "secret", 1)
		h.turn(0)
		h.purge(in.InstanceID)
		out, err := h.Cloud.Table.Query(ctx, &dynamodb.QueryInput{
			TableName: aws.String("perdure"), KeyConditionExpression: aws.String("pk = :pk"),
			ExpressionAttributeValues: map[string]ddbtypes.AttributeValue{
				":pk": &ddbtypes.AttributeValueMemberS{Value: "x#" + in.ExecutionID},
			},
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
			sk := text(it, "sk")
			plain := sk == "c" || sk == "i" || len(it) == 4
			if until < month || !plain || it["gs"] != nil || it["attention"] != nil {
				t.Errorf("got item %v after the deletion", it)
			}
		}
		if h.wantStubs(in.ExecutionID, 4); len(out.Items) != 5 {
			t.Errorf("got %d items of the execution, want four stubs and the cancel record", len(out.Items))
		}
	})
}

// familyRegistry returns a family of orchestrations for deletions of "middle", which has a parent, two executions, a
// child and a timer.
func familyRegistry() *perdure.Registry {
	r := registry()
	perdure.AddOrchestration(r, "grandparent", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		options := perdure.WithInstanceID("middle")
		_, err := perdure.CallSubOrchestrationByName[int](ctx, "middle", 1, options).Await(ctx)
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

// checkFamily fails the test unless the deletion of "middle" has left the correct state, and the hub is idle.
func (h *hub) checkFamily(what string, in provider.Instance, past []string) {
	h.t.Helper()
	end, err := h.Provider.ReadTerminalEvent(h.t.Context(), in.ExecutionID)
	if err != nil || !strings.HasSuffix(string(end.Output), `: deleted"`) {
		h.t.Errorf("%s: the parent ended with %s %s, %v, want the deletion of the child",
			what, end.Kind, end.Output, err)
	}
	h.wantNone("middle")
	for _, x := range past {
		if it := h.item("x#"+x, "h#0000000000"); text(it, "stub") == "" {
			h.t.Errorf("%s: execution %s still exists: %v", what, x, it)
		}
	}
	if s := h.read(provider.Instance{InstanceID: "grandchild"}).Status; s != provider.StatusCancelled {
		h.t.Errorf("%s: the child is %s, want cancelled", what, s)
	}
	h.wantInstances(3) // the parent, the child and the detached one
	if err := h.CheckIdle(h.t.Context()); err != nil {
		h.t.Errorf("%s: got error %v", what, err)
	}
}

// deleteFamily starts the family, deletes "middle" with del, and runs the hub and its sweeper until the deletion is
// complete.
func (h *hub) deleteFamily(ctx context.Context, what string, del func(c *client.Client) error) {
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
		h.t.Fatalf("got %d executions of middle, want 2", len(past))
	}
	if err := del(client.New(h.Provider)); err != nil {
		h.serveFor(3 * time.Minute)
		if _, err := h.Renewer.Sweep(ctx); err != nil {
			h.t.Errorf("%s: sweep: %v", what, err)
		}
	}
	h.serveFor(48 * time.Hour)
	if in, err := h.Provider.ReadInstance(ctx, "middle"); err == nil && in.Status != provider.StatusDeleting {
		if err := h.Provider.DeleteInstance(ctx, "middle", true); err != nil { // the first call had no effect
			h.t.Errorf("%s: got error %v", what, err)
		}
		h.serveFor(48 * time.Hour)
	}
	h.checkFamily(what, in, past)
}

// The process that deletes crashes before or after its n-th AWS call, for every n. The sweeper completes the deletion.
func TestR17_crashAtAnyCallOfADeletion_sweeperCompletesIt(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("after=%v", after), func(t *testing.T) {
			t.Parallel()
			for n, more := int64(1), true; more; n++ {
				inBubble(t, simhub.Options{Registry: familyRegistry()}, func(ctx context.Context, h *hub) {
					what := fmt.Sprintf("crash at call %d", n)
					h.deleteFamily(ctx, what, func(c *client.Client) error {
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

// 1. A deletion makes n-1 calls.
// 2. Another deletion of the same instance completes, and a later incarnation starts.
// 3. The first deletion continues, finds that it is complete, and does not change the later incarnation.
func TestR17_concurrentDeletions_keepTheNextIncarnation(t *testing.T) {
	t.Parallel()
	for n, more := int64(2), true; more; n++ { // before call 2, the deletion has not read its incarnation
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
					next, _ = h.Provider.StartOrchestration(ctx, provider.Start{
						InstanceID: old.InstanceID, Name: "then-waits", Input: encoded(t, 1), StartID: "next",
					})
					h.turn(0)
				}
				return proceed()
			})
			err := h.Provider.DeleteInstance(ctx, old.InstanceID, true)
			h.interfere(nil)
			if more = overtaken.Load(); err != nil {
				t.Errorf("overtaken at call %d: the first deletion returned %v", n, err)
			}
			if !more {
				return
			}
			if now := h.read(next); now.StartID != "next" || now.Status != provider.StatusRunning {
				t.Fatalf("overtaken at call %d: the later incarnation is %s, of start %q", n, now.Status, now.StartID)
			}
			h.raise(next, "one", 1)
			h.raise(next, "two", 2)
			if end := h.finish(next); string(end.Output) != "3" {
				t.Errorf("overtaken at call %d: the later incarnation ended with %s", n, end.String())
			}
			h.checkIdle()
		})
	}
}

// 1. The sweeper reads an abandoned deletion from an index that is not up to date.
// 2. The deletion completes, and a later incarnation starts, which has ended or is running.
// 3. The sweeper does not change the later incarnation.
func TestSweeper_abandonedDeletionHasCompleted_keepsTheNextIncarnation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		after, life string
		want        provider.RuntimeStatus
	}{
		"ended": {"Query", "nothing", provider.StatusCompleted}, "running": {
			"GetItem", "chain", provider.StatusRunning,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
				in := h.start("chain", 3)
				h.turn(0)
				h.failDeletion(in.InstanceID, func(c simaws.Call) bool { return isCommit(c, "h#0000000001") })
				time.Sleep(10 * time.Minute)
				var nextRuns atomic.Bool
				h.interfere(func(_ context.Context, call simaws.Call, next func() error) error {
					err := next()
					if call.Operation == c.after && h.queriedDeletions() && nextRuns.CompareAndSwap(false, true) {
						h.purge(in.InstanceID)
						_, startErr := h.Provider.StartOrchestration(ctx, provider.Start{
							InstanceID: in.InstanceID, Name: c.life, Input: encoded(t, 1), StartID: "next",
						})
						h.turn(0)
						return errors.Join(err, startErr)
					}
					return err
				})
				_, err := h.Renewer.Sweep(ctx)
				h.interfere(nil)
				if now := h.read(in); now.StartID != "next" || now.Status != c.want || !nextRuns.Load() || err != nil {
					t.Errorf("the later incarnation is %s, started: %v, %v, want %s",
						now.Status, nextRuns.Load(), err, c.want)
				}
			})
		})
	}
}

// queriedDeletions reports whether the sweeper has queried deletions.
func (h *hub) queriedDeletions() bool {
	return slices.ContainsFunc(h.made(), func(c simaws.Call) bool {
		q, ok := c.Input.(*dynamodb.QueryInput)
		return ok && text(q.ExpressionAttributeValues, ":kind") == "deleting"
	})
}

// The sweeper continues a deletion after two minutes without progress.
func TestSweeper_deletionIsAbandoned_isCompleted(t *testing.T) {
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
			if _, err := h.Renewer.Sweep(ctx); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			if now, _ := h.Provider.ReadInstance(ctx, in.InstanceID); now.Status != watch.want {
				t.Errorf("after another %v the instance is %q, want %q", watch.after, now.Status, watch.want)
			}
		}
		h.wantStubs(in.ExecutionID, 3)
	})
}
