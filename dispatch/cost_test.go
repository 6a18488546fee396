package dispatch_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/simhub"
)

// A warm turn reads nothing. Each turn makes one write. The first and the last turn also update the instance.
func TestCost_chainOfTen(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("chain", 10)
		h.Cloud.ResetCounts()
		if end := h.finish(in); string(end.Output) != "10" {
			t.Fatalf("ended with %s", end.String())
		}
		want := map[string]int64{
			"DynamoDB.PutItem":    11, // one per turn: the start and ten outcomes
			"DynamoDB.UpdateItem": 2,  // Running, Completed
			"DynamoDB.GetItem":    1,  // the test reads the instance
			"DynamoDB.Query":      12,
			// the first turn, the cancel record before each activity, and the end read by the test
			"SQS.SendMessageBatch": 20, // ten work items and ten outcomes; the mapping deletes the records
		}
		h.wantCalls(want)
	})
}

// wantCalls fails the test unless functions made these calls since the last reset. It ignores calls of the mappings.
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

func TestCost_warmTurn_isOneWrite(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("fan", 3)
		h.turn(0)
		h.complete(in, 1, 3)
		h.Cloud.ResetCounts()
		h.turn(0)
		got := h.Cloud.Counts()
		reads := got["DynamoDB.Query"] + got["DynamoDB.GetItem"]
		if got["DynamoDB.PutItem"] != 1 ||
			reads+got["DynamoDB.UpdateItem"]+got["DynamoDB.TransactWriteItems"] != 0 {
			t.Errorf("got calls %v of a plain warm turn, want one PutItem", got)
		}
		if c := h.Cloud.Capacity(); c.Write != 1 || c.Read != 0 {
			t.Errorf("got %+v for a plain warm turn, want 1 write unit", c)
		}
	})
}

// Five concurrent activities need one batch of work items, one message with their outcomes, and one more turn.
func TestCost_fanOutOfFive(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("fan", 5)
		h.Cloud.ResetCounts()
		if end := h.finish(in); string(end.Output) != "15" {
			t.Fatalf("ended with %s %s", end.String(), end.Output)
		}
		got := h.Cloud.Counts()
		if got["DynamoDB.PutItem"] != 2 || got["SQS.SendMessageBatch"] != 2 || got["SQS.DeleteMessageBatch"] != 0 {
			t.Errorf("got calls %v, want 2 turns, 2 sends and no delete", got)
		}
		if n := got["DynamoDB.Query"] - 2; n != 1 { // the first turn and the test read once each
			t.Errorf("got %d reads of the cancel record, want 1 for the batch", n)
		}
	})
}

// The turn that cancels 2,000 activities makes the same calls as a turn that cancels two: one transaction of two items.
func TestCost_cancelOf2000Activities_equalsCancelOfTwo(t *testing.T) {
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
			first, last := cancels.Of(4), cancels.Of(int64(3+n))
			if err != nil || !first.Requested || !last.Requested || last.Reason != "select_loser" {
				t.Errorf("cancel of %d: got first %+v, last %+v, error %v", n, first, last, err)
			}
		})
	}
	if diff := cmp.Diff(calls[2], calls[2000]); diff != "" {
		t.Errorf("calls (-of 2 +of 2000):\n%s", diff)
	}
	reads := calls[2]["DynamoDB.Query"] + calls[2]["DynamoDB.GetItem"]
	if calls[2]["DynamoDB.TransactWriteItems"] != 1 || calls[2]["DynamoDB.PutItem"]+reads != 0 {
		t.Errorf("got calls %v of the turn that cancels, want one transaction", calls[2])
	}
	t.Logf("calls %v, write units %v", calls[2000], units)
}

// Without any cancellation, each activity costs one read of one unit. A long activity costs one such read per second,
// and three reads of half a unit in between.
func TestCost_activitiesWithoutCancellation(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		f.jobsOf("a", job{Takes: time.Millisecond})
		f.Cloud.ResetCounts()
		<-f.handled(ctx, f.worker(nil))
		if reads, c := f.Cloud.Counts()["DynamoDB.Query"], f.Cloud.Capacity(); reads != 1 || c.Read > 1 {
			t.Errorf("short activity: got %d reads of %v units, want 1 of at most 1", reads, c.Read)
		}
		f.jobsOf("b", job{Takes: 10*time.Second + 400*time.Millisecond})
		f.Cloud.ResetCounts()
		<-f.handled(ctx, f.worker(nil))
		if reads, c := f.Cloud.Counts()["DynamoDB.Query"], f.Cloud.Capacity(); reads != 1+10+31 || c.Read > 1+10+31./2 {
			t.Errorf("activity of 10s: got %d reads of %v units, want 1 before, 1 per second, and 3 of half a unit "+
				"between",
				reads, c.Read)
		}
	})
}
