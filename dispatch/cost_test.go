package dispatch_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

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
			"DynamoDB.PutItem":       11, // a turn each: the start, and ten outcomes
			"DynamoDB.UpdateItem":    2,  // Running, Completed
			"DynamoDB.GetItem":       11, // is it cancelled? once before each activity; and the test's own, of the instance
			"DynamoDB.Query":         2,  // the cold read of the first turn; and the test's own, of the end
			"SQS.SendMessageBatch":   20, // ten work items, ten outcomes
			"SQS.DeleteMessageBatch": 10, // each work item, by its worker
		}
		got := h.Cloud.Counts()
		for op := range got {
			if op == "Lambda.Invoke" || op == "Lambda.DeleteMessageBatch" {
				delete(got, op) // the mappings' own
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
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
		if got["DynamoDB.PutItem"] != 2 || got["SQS.SendMessageBatch"] != 2 || got["SQS.DeleteMessageBatch"] != 1 {
			t.Errorf("calls %v: want 2 turns, 2 sends and 1 delete", got)
		}
		if n := got["DynamoDB.GetItem"] - 1; n != 1 { // one is the test's own
			t.Errorf("%d reads of the cancel record, want 1 for the batch", n)
		}
	})
}
