package dispatch_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/simhub"
)

// What an orchestration costs, call by call. A warm turn reads nothing, a plain turn is exactly one write request; only the
// first turn and the last add an update of the instance.
func TestWhatAChainOfTenCosts(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("chain", 10)
		h.Cloud.ResetCounts()
		if end := h.finish(in); string(end.Output) != "10" {
			t.Fatalf("ended with %s", end.String())
		}
		want := map[string]int64{
			"DynamoDB.PutItem":     11, // a turn each: the start, and ten outcomes
			"DynamoDB.UpdateItem":  2,  // Running, Completed
			"DynamoDB.GetItem":     1,  // the test's own, of the instance
			"DynamoDB.Query":       12, // the cold read of the first turn; is it cancelled? once before each activity; and the test's own, of the end
			"SQS.SendMessageBatch": 20, // ten work items, ten outcomes; the records are left to the mapping
		}
		h.wantCalls(want)
	})
}

// wantCalls fails unless these are the calls since the last reset, but for what the mappings do themselves.
func (h *hub) wantCalls(want map[string]int64) {
	h.t.Helper()
	got := h.Cloud.Counts()
	for op := range got {
		if op == "Lambda.Invoke" || op == "Lambda.DeleteMessageBatch" {
			delete(got, op)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		h.t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestAWarmTurnReadsNothingAndAPlainTurnIsOneWrite(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("fan", 3)
		h.turn(0)
		h.complete(in, 1, 3)
		h.Cloud.ResetCounts()
		h.turn(0)
		got := h.Cloud.Counts()
		if got["DynamoDB.PutItem"] != 1 || got["DynamoDB.Query"]+got["DynamoDB.GetItem"]+got["DynamoDB.UpdateItem"]+got["DynamoDB.TransactWriteItems"] != 0 {
			t.Errorf("a plain warm turn made %v", got)
		}
		if c := h.Cloud.Capacity(); c.Write != 1 || c.Read != 0 {
			t.Errorf("a plain warm turn took %+v, want 1 write unit", c)
		}
	})
}

// Five activities at once are one message to the worker's queue batch, and their outcomes one message back and one turn.
func TestWhatAFanOfFiveCosts(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("fan", 5)
		h.Cloud.ResetCounts()
		if end := h.finish(in); string(end.Output) != "15" {
			t.Fatalf("ended with %s %s", end.String(), end.Output)
		}
		got := h.Cloud.Counts()
		if got["DynamoDB.PutItem"] != 2 || got["SQS.SendMessageBatch"] != 2 || got["SQS.DeleteMessageBatch"] != 0 {
			t.Errorf("calls %v: want 2 turns, 2 sends and no delete", got)
		}
		if n := got["DynamoDB.Query"] - 2; n != 1 { // one is the first turn's, and one the test's own
			t.Errorf("%d reads of the cancel record, want 1 for the batch", n)
		}
	})
}

// The turn that cancels 2,000 activities makes the calls of one that cancels two: one transaction of two items, however wide
// the race was.
func TestCancellingTwoThousandCostsAsMuchAsTwo(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "race", func(context.Context, int) (int, error) { return 0, nil })
	perdure.AddOrchestration(r, "wide", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		racers := []perdure.Awaitable{perdure.WaitForExternalEvent[int](ctx, "add")}
		for i := range n {
			racers = append(racers, perdure.CallActivityByName[int](ctx, "race", i))
		}
		if _, err := perdure.Select(ctx, racers...); err != nil {
			return 0, err
		}
		return perdure.WaitForExternalEvent[int](ctx, "never").Await(ctx)
	})
	calls, units := map[int]map[string]int64{}, map[int]int64{}
	for _, n := range []int{2, 2000} {
		inBubble(t, simhub.Options{Registry: r}, func(_ context.Context, h *hub) {
			in := h.start("wide", n)
			h.turn(0)
			h.raise(in, "", 1)
			h.Cloud.ResetCounts()
			h.turn(0)
			calls[n], units[n] = h.Cloud.Counts(), int64(h.Cloud.Capacity().Write)
			cancels, _, err := h.Provider.ReadCancels(h.t.Context(), in.ExecutionID, 0)
			if first, last := cancels.Of(4), cancels.Of(int64(3+n)); err != nil || !first.Requested || !last.Requested || last.Reason != "select_loser" {
				t.Errorf("of %d: %+v, %+v, %v", n, first, last, err)
			}
		})
	}
	if diff := cmp.Diff(calls[2], calls[2000]); diff != "" {
		t.Errorf("calls (-of 2 +of 2000):\n%s", diff)
	}
	if calls[2]["DynamoDB.TransactWriteItems"] != 1 || calls[2]["DynamoDB.PutItem"]+calls[2]["DynamoDB.Query"]+calls[2]["DynamoDB.GetItem"] != 0 {
		t.Errorf("the deciding turn made %v", calls[2])
	}
	t.Logf("calls %v, write units %v", calls[2000], units)
}

// An orchestration that never cancels pays, for cancellation, one read of one unit for each activity, and while it runs longer one a second, and
// half a unit each quarter between.
func TestWhatCancellationCostsThatNeverCancels(t *testing.T) {
	t.Parallel()
	onFloor(t, func(ctx context.Context, f *floor) {
		f.jobsOf("a", job{Takes: time.Millisecond})
		f.Cloud.ResetCounts()
		<-f.handled(ctx, f.worker(nil))
		if reads, c := f.Cloud.Counts()["DynamoDB.Query"], f.Cloud.Capacity(); reads != 1 || c.Read > 1 {
			t.Errorf("a short activity: %d reads of %v units, want one of at most one", reads, c.Read)
		}
		f.jobsOf("b", job{Takes: 10*time.Second + 400*time.Millisecond})
		f.Cloud.ResetCounts()
		<-f.handled(ctx, f.worker(nil))
		if reads, c := f.Cloud.Counts()["DynamoDB.Query"], f.Cloud.Capacity(); reads != 1+10+31 || c.Read > 1+10+31./2 {
			t.Errorf("one of ten seconds: %d reads of %v units, want one before, one a second, and three of half a unit between", reads, c.Read)
		}
	})
}
