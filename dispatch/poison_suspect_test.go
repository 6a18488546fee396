package dispatch_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// naps returns a registry with an activity of the given durations, and an orchestration that calls it for each duration
// of its input.
func naps(running, most *atomic.Int64) *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "nap", func(ctx context.Context, d time.Duration) (int, error) {
		n := running.Add(1)
		defer running.Add(-1)
		for was := most.Load(); n > was && !most.CompareAndSwap(was, n); was = most.Load() {
		}
		select {
		case <-time.After(d):
			return 1, nil
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	})
	perdure.AddOrchestration(r, "naps", func(ctx *perdure.OrchestrationContext, ds []time.Duration) (int, error) {
		var fs []*perdure.Future[int]
		for _, d := range ds {
			fs = append(fs, perdure.CallActivityByName[int](ctx, "nap", d))
		}
		return sumOf(ctx, fs)
	})
	return r
}

// suspect stores crash markers for the selected work items, and returns all work items in their fourth delivery.
func (h *hub) suspect(ctx context.Context, pick func(activityID int64) bool) []provider.Record {
	h.t.Helper()
	for range 2 {
		h.deliverAndCrash("default", "sim://default")
	}
	for _, it := range h.workItems() {
		if pick(it.ActivityID) {
			if _, err := h.Provider.PutCrashMarker(ctx, provider.Delivery{
				ExecutionID: it.ExecutionID,
				ActivityID:  it.ActivityID, Record: it.Record,
			}); err != nil {
				h.t.Fatal(err)
			}
		}
		if err := h.Provider.AbandonRecords(ctx, "default", 0, it.Record); err != nil {
			h.t.Fatal(err)
		}
	}
	return h.receive("sim://default")
}

// Interleaving: a suspect waits for a minute until the other records of its batch are done, while its lease would
// expire after half a minute. The lease is renewed, and no other process runs the suspect. If its process crashes while
// it waits, SQS redelivers the suspect within half a minute.
func TestR13_suspectWaitsForItsBatch_isLeased(t *testing.T) {
	t.Parallel()
	for name, dies := range map[string]bool{"suspect runs": false, "the process crashes": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var running, most atomic.Int64
			r := naps(&running, &most)
			inBubble(t, simhub.Options{Registry: r}, func(ctx context.Context, h *hub) {
				h.start("naps", []time.Duration{time.Minute, time.Second})
				h.turn(0)
				records := h.suspect(ctx, func(id int64) bool { return id == 4 })
				began, done := time.Now(), make(chan []string, 1)
				if dies {
					h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
						if time.Since(began) > 40*time.Second && c.Operation != "ReceiveMessage" {
							return errors.New("the process has crashed")
						}
						return next()
					})
				}
				go func() { done <- h.worker(r).HandleRecords(ctx, records) }()
				for !dies && time.Since(began) < 70*time.Second {
					time.Sleep(time.Second)
					if again := h.receive("sim://default"); len(again) > 0 {
						t.Fatalf("redelivered after %v", time.Since(began))
					}
				}
				if dies {
					time.Sleep(75 * time.Second)
					if again := h.receive("sim://default"); len(again) != 2 {
						t.Errorf("%v after the crash: got %d records, want 2",
							time.Since(began)-40*time.Second, len(again))
					}
				}
				if failed := <-done; len(failed) > 0 != dies || most.Load() != 1 {
					t.Errorf("got failed records %v, %d concurrent runs", failed, most.Load())
				}
			})
		})
	}
}

func TestR13_suspectSucceeds_crashMarkersAreRemoved(t *testing.T) {
	t.Parallel()
	var running, most atomic.Int64
	r := naps(&running, &most)
	inBubble(t, simhub.Options{Registry: r}, func(ctx context.Context, h *hub) {
		in := h.start("naps", []time.Duration{time.Second})
		h.turn(0)
		records := h.suspect(ctx, func(int64) bool { return true })
		marks := func() string {
			return h.item("x#"+in.ExecutionID, "p#3#"+records[0].ID)["begun"].(*ddbtypes.AttributeValueMemberN).Value
		}
		if n := marks(); n != "1" {
			t.Errorf("got %s crash markers before the run, want 1", n)
		}
		if failed := h.worker(r).HandleRecords(ctx, records); len(failed) > 0 || most.Load() != 1 {
			t.Errorf("got failed records %v, %d concurrent runs", failed, most.Load())
		}
		if n := marks(); n != "0" {
			t.Errorf("got %s crash markers after the run, want 0", n)
		}
	})
}

// A polling process has several batches. It runs one suspect of all batches at a time.
func TestR13_severalBatches_oneSuspectRunsAtATime(t *testing.T) {
	t.Parallel()
	var running, most atomic.Int64
	r := naps(&running, &most)
	inBubble(t, simhub.Options{Registry: r}, func(ctx context.Context, h *hub) {
		in := h.start("naps", []time.Duration{time.Second, time.Second, time.Second})
		h.turn(0)
		records := h.suspect(ctx, func(int64) bool { return true })
		w := h.worker(r)
		var batches sync.WaitGroup
		for i := range records {
			batches.Go(func() {
				if failed := w.HandleRecords(ctx, records[i:i+1]); len(failed) > 0 {
					t.Errorf("got failed records %v", failed)
				}
			})
		}
		batches.Wait()
		if most.Load() != 1 {
			t.Errorf("got %d concurrent runs, want 1", most.Load())
		}
		if end := h.finish(in); string(end.Output) != "3" {
			t.Errorf("ended with %s, want output 3", end.String())
		}
	})
}

// A suspect that does not fit the rest of the invocation is released without a crash marker, because it has not
// started.
func TestR13_suspectDoesNotFitInvocation_isReleasedWithoutMarker(t *testing.T) {
	t.Parallel()
	var running, most atomic.Int64
	r := naps(&running, &most)
	inBubble(t, simhub.Options{Registry: r}, func(ctx context.Context, h *hub) {
		h.start("naps", []time.Duration{time.Hour, time.Second})
		h.turn(0)
		records := h.suspect(ctx, func(id int64) bool { return id == 4 })
		invocation, stop := context.WithTimeout(ctx, time.Minute)
		defer stop()
		if failed := h.worker(r).HandleRecords(invocation, records); len(failed) != 2 {
			t.Errorf("got failed records %v, want 2", failed)
		}
		synctest.Wait()
		for _, it := range h.workItemsAfter(20 * time.Second) {
			died, err := h.Provider.PutCrashMarker(ctx, provider.Delivery{
				ExecutionID: it.ExecutionID, ActivityID: it.ActivityID, Record: it.Record,
			})
			// the live process removed the marker of the first activity, and the second one keeps its marker
			if want := int(it.ActivityID) - 3; err != nil || died != want {
				t.Errorf("activity %d: got %d crash markers, error %v", it.ActivityID, died, err)
			}
		}
	})
}

// workItemsAfter waits for d and returns the visible work items.
func (h *hub) workItemsAfter(d time.Duration) []provider.LockedWorkItem {
	h.t.Helper()
	time.Sleep(d)
	items := h.workItems()
	if len(items) != 2 {
		h.t.Errorf("got %d work items, want 2", len(items))
	}
	return items
}

// The work item of a suspect is resent because calls failed before its crash markers were read. The markers still
// count, and the work item is detected as poison.
func TestR13_workItemIsResent_crashMarkersStillCount(t *testing.T) {
	t.Parallel()
	d := &crashingActivity{}
	inBubble(t, simhub.Options{Registry: poisonRegistry(d), Intercept: crashable}, func(_ context.Context, h *hub) {
		in := h.start("poisoned", 0)
		const most = 2
		var failures atomic.Int64
		h.interfere(func(ctx context.Context, c simaws.Call, next func() error) error {
			if d.ran.Load() == 8 && c.Operation == "GetItem" && failures.Add(1) <= most {
				return errors.New("out of service")
			}
			return crashable(ctx, c, next)
		})
		if end := h.finish(in); string(end.Output) != `"0, poison true"` || d.ran.Load() != 13 ||
			failures.Load() < most {
			t.Errorf("got %d runs, output %s after %d failures", d.ran.Load(), end.Output, failures.Load())
		}
	})
}

// Crash markers of a record still count after the sweeper recovers the record from the dead letters. The record is
// detected as poison.
func TestR13_deadLetterIsRecovered_crashMarkersStillCount(t *testing.T) {
	t.Parallel()
	d := &crashingActivity{}
	inBubble(t, simhub.Options{Registry: poisonRegistry(d), Intercept: crashable}, func(ctx context.Context, h *hub) {
		in := h.start("poisoned", 0)
		for d.ran.Load() < 8 {
			h.serveFor(10*time.Second + 777*time.Millisecond)
		}
		time.Sleep(15 * time.Minute)
		h.exhaust(ctx, "default", "sim://default")
		h.recoverDeadLetters(ctx)
		if end := h.finish(in); string(end.Output) != `"0, poison true"` || d.ran.Load() != 13 {
			t.Errorf("got %d runs, output %s", d.ran.Load(), end.Output)
		}
	})
}
