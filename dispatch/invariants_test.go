package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// These tests run the interleavings that would break I6, I7 and I8. TestSimulation searches for others.

// readsCancels reports whether a call reads the cancel record of an execution.
func readsCancels(c simaws.Call) bool {
	in, ok := c.Input.(*dynamodb.QueryInput)
	return ok && text(in.ExpressionAttributeValues, ":last") == "c"
}

// I6: an activity that is cancelled before the worker reads the cancel record does not run. An activity that is
// cancelled later runs and observes the cancellation.
func TestI6_cancelAroundTheReadBeforeAStart_isObserved(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]bool{"between receive and read": true, "between read and start": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onJobHub(t, func(ctx context.Context, f *jobHub) {
				in := f.jobsOf("a", forever)
				var once atomic.Bool
				f.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
					mine := readsCancels(c) && once.CompareAndSwap(false, true)
					if mine && before {
						f.cancel(in, 3)
					}
					err := next()
					if mine && !before {
						f.cancel(in, 3)
					}
					return err
				})
				began := time.Now()
				if failed := <-f.handled(ctx, f.worker(nil)); len(failed) > 0 || !once.Load() {
					t.Errorf("got failed records %v, read of the cancel record: %t", failed, once.Load())
				}
				if before {
					if f.ran() > 0 {
						t.Error("the activity ran")
					}
					f.wantSent(0)
					return
				}
				f.wantCause(3, perdure.ReasonSelectLoser)
				if took := f.observedAt().Sub(began); f.ran() != 1 || took > time.Second {
					t.Errorf("got %d runs and a cancellation after %v, want 1 within 1s", f.ran(), took)
				}
			})
		})
	}
}

// 1. A poll for a running activity is in progress and has found no cancellation.
// 2. Another activity of the execution is cancelled, and a worker receives it.
// 3. The worker does not use the poll of step 1 for the second activity.
func TestI6_pollIsInProgress_isNotUsedAsTheReadBeforeAStart(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		in := f.jobsOf("a", forever, job{})
		records := f.receive("sim://default")
		slow := make(chan struct{})
		var reads atomic.Int64 // the first is before the start, the second is a poll
		f.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			err := next()
			if readsCancels(c) && reads.Add(1) == 2 {
				<-slow
			}
			return err
		})
		w := f.worker(nil)
		first := make(chan []string, 1)
		go func() { first <- w.HandleRecords(ctx, records[:1]) }()
		time.Sleep(1500 * time.Millisecond)
		if n := reads.Load(); n != 2 {
			t.Fatalf("got %d reads, want one before the start and one poll", n)
		}
		f.cancel(in, 4)
		if failed := w.HandleRecords(ctx, records[1:]); len(failed) > 0 || f.ran() != 1 {
			t.Errorf("got failed records %v and %d runs, want none and only the first activity", failed, f.ran())
		}
		close(slow)
		f.cancel(in, 3)
		<-first
	})
}

// outcome sends an outcome of activity #3 that contains its segment.
func (h *hub) outcome(in provider.Instance, result string) {
	h.t.Helper()
	h.send(provider.Message{
		Kind: provider.MessageActivityOutcomes, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, Segment: 1,
		Outcomes: []provider.ActivityOutcome{{ActivityID: 3, Attempt: 1, Result: history.Payload(result)}},
	})
}

// I7: an activity that ran twice has two outcomes. The first one counts, in any turn and environment.
func TestI7_activityHasTwoOutcomes_secondIsDropped(t *testing.T) {
	t.Parallel()
	for name, turns := range map[string][]int{
		"in one turn": {0}, "to the warm environment": {0, 0}, "to another environment": {0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{Environments: 2}, func(_ context.Context, h *hub) {
				in := h.start("fan", 2)
				h.turn(0)
				h.workItems()
				h.outcome(in, "10")
				if len(turns) > 1 {
					h.turn(turns[0])
				}
				h.outcome(in, "20")
				if failed := h.turn(turns[len(turns)-1]); len(failed) > 0 {
					t.Errorf("got failed records %v, want none", failed)
				}
				h.complete(in, 1, 4)
				h.turn(0)
				events := h.events(in)
				if end := events[len(events)-1]; string(end.Output) != "11" {
					t.Errorf("ended with %s %s, want the sum 11", end.String(), end.Output)
				}
				if err := checkSettled(in.ExecutionID, events); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// I7: an activity receives a cancel request and an outcome, in either order, in one turn or two. The first message
// settles the activity.
func TestI7_outcomeAndCancel_settleTheActivityOnce(t *testing.T) {
	t.Parallel()
	for _, cancelFirst := range []bool{true, false} {
		for _, together := range []bool{true, false} {
			t.Run(fmt.Sprintf("cancelFirst=%t/together=%t", cancelFirst, together), func(t *testing.T) {
				t.Parallel()
				o := simhub.Options{Registry: interventionRegistry(newMonitor())}
				inBubble(t, o, func(_ context.Context, h *hub) {
					in := h.start("picky", 2)
					h.turn(0)
					h.workItems()
					acts := []func(){
						func() {
							h.send(provider.Message{
								Kind: provider.MessageCancelActivity, InstanceID: in.InstanceID,
								ExecutionID: in.ExecutionID, ActivityID: 3,
							})
						},
						func() { h.outcome(in, `"done"`) },
					}
					if !cancelFirst {
						slices.Reverse(acts)
					}
					acts[0]()
					if !together {
						h.turn(0)
					}
					acts[1]()
					h.turn(0)
					h.send(provider.Message{
						Kind: provider.MessageActivityOutcomes, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID,
						Outcomes: []provider.ActivityOutcome{
							{ActivityID: 4, Attempt: 1, Result: history.Payload(`"done"`)},
						},
					})
					h.turn(0)
					want := `["done","done"]`
					if cancelFirst {
						want = `["cancelled","done"]`
					}
					events := h.events(in)
					if end := events[len(events)-1]; string(end.Output) != want {
						t.Errorf("ended with %s %s, want %s", end.String(), end.Output, want)
					}
					if err := checkSettled(in.ExecutionID, events); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// I8: 1. A process runs a turn and freezes before the commit.
// 2. The execution continues as new.
// 3. The process commits the turn, and the commit conflicts.
func TestI8_frozenProcessCommitsAfterContinueAsNew_conflicts(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Environments: 2}, func(ctx context.Context, h *hub) {
		in := h.start("sums", 0)
		h.turn(0)
		h.raise(in, "one", 1)
		batch := h.receive("sim://inbox.fifo")
		var frozen atomic.Bool
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if isCommit(c, "h#0000000002") && frozen.CompareAndSwap(false, true) {
				time.Sleep(2 * time.Minute)
				h.raise(in, "two", 2)
				h.turn(1) // consumes both events and continues as new
			}
			return next()
		})
		h.Orchestrators[0].HandleRecords(ctx, batch)
		h.interfere(nil)
		old := h.events(in)
		if end := old[len(old)-1]; !frozen.Load() || end.Kind != history.OrchestrationContinuedAsNew {
			t.Errorf("frozen: %t, the execution ended with %s, want continued as new", frozen.Load(), end.String())
		}
		if it := h.item("x#"+in.ExecutionID, "h#0000000003"); it != nil {
			t.Errorf("the ended execution gained the segment %v", it)
		}
		h.raise(in, "end", 0)
		if end := h.finish(in); string(end.Output) != "3" || h.read(in).ExecutionNumber != 2 {
			t.Errorf("execution %d ended with %s, want execution 2 with 3", h.read(in).ExecutionNumber, end.Output)
		}
		h.checkIdle()
	})
}

// I8: 1. A process runs a turn and freezes before the commit.
// 2. A deletion writes its end at the position of the turn, or replaces that end with a stub.
// 3. The process commits the turn, and the commit conflicts.
func TestI8_frozenProcessCommitsAfterDeletion_conflicts(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"the fence", "stub"} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
				in := h.start("chain", 3)
				h.turn(0)
				h.workItems()
				h.complete(in, 1, 3)
				var frozen atomic.Bool
				h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
					if !isCommit(c, "h#0000000002") || !frozen.CompareAndSwap(false, true) {
						return next()
					}
					if place == "the fence" {
						h.failDeletion(in.InstanceID, func(c simaws.Call) bool { return isCommit(c, "h#0000000000") })
					} else {
						h.purge(in.InstanceID)
					}
					return next()
				})
				if failed := h.turn(0); len(failed) > 0 || !frozen.Load() {
					t.Errorf("got failed records %v, frozen: %t; want none, true", failed, frozen.Load())
				}
				h.interfere(nil)
				if it := h.item("x#"+in.ExecutionID, "h#0000000003"); it != nil {
					t.Errorf("the ended execution gained the segment %v", it)
				}
				if n := len(h.workItems()); n > 0 {
					t.Errorf("the late turn sent %d work items, want none", n)
				}
				if place == "the fence" {
					h.purge(in.InstanceID)
				}
				h.wantNone(in.InstanceID)
				h.wantStubs(in.ExecutionID, 3) // the start, the first turn, and the end by the deletion
				h.serveFor(time.Hour)
				h.checkIdle()
			})
		})
	}
}
