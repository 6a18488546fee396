package dynamo

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsqueue"
	"github.com/perdure/perdure/provider/dynamo/internal/workqueue"
)

// keyed are the entries of activities with exclusive keys, in the order of their calls, each with an input of so many
// bytes.
func keyed(t *testing.T, keys []string, bytes func(key string) int) (all []sqsqueue.Entry) {
	t.Helper()
	for i, key := range keys {
		input, err := json.Marshal(strings.Repeat("x", bytes(key)))
		if err != nil {
			t.Fatal(err)
		}
		e, err := workqueue.Encode(&provider.WorkItem{ActivityID: int64(i + 1), ExclusiveKey: key, Input: input})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// What is sent side by side has of a key what lies in one batch, in the order of its calls: of two batches either may
// be first. Ten of a key are one batch, and not ten rounds, as far as SQS takes them in one.
func TestR29OfAKeyOneBatchIsSentAtATime(t *testing.T) {
	t.Parallel()
	var keys []string
	for i := range 25 { // one after the other, as code calls them that goes by something else than keys
		keys = append(keys, "long")
		if i < 3 {
			keys = append(keys, "heavy", "two")
		}
		if i%4 == 0 {
			keys = append(keys, fmt.Sprint("once", i))
		}
	}
	heavy := func(key string) int {
		if key == "heavy" {
			return 400 << 10 // two are a batch
		}
		return 10
	}
	rounds := sqsqueue.RoundsOf(sqsqueue.Outgoing{{URL: "url", Entries: keyed(t, keys, heavy)}})
	if len(rounds) != 3 {
		t.Errorf("%d rounds, and ten of a key are a batch", len(rounds))
	}

	last, sent := map[string]int64{}, 0
	for n, round := range rounds {
		seen := map[string]bool{}
		for _, batch := range sqsqueue.Batches(round[0].Entries) {
			bytes := 0
			here := map[string]bool{}
			for _, e := range batch {
				if e.ID <= last[e.Group] {
					t.Errorf("round %d: activity %d is sent behind %d of its key", n, e.ID, last[e.Group])
				}
				if seen[e.Group] && !here[e.Group] {
					t.Errorf("round %d: activity %d is in another batch than those of its key", n, e.ID)
				}
				last[e.Group], seen[e.Group], here[e.Group] = e.ID, true, true
				bytes += len(e.Body)
			}
			sent += len(batch)
			if len(batch) > sqsqueue.BatchLimit || bytes > sqsqueue.MessageLimit {
				t.Errorf("round %d: a batch of %d with %d bytes", n, len(batch), bytes)
			}
		}
	}
	if sent != len(keys) {
		t.Errorf("%d of %d are sent", sent, len(keys))
	}
}

// Dead letters of one key that are redriven are as many as there are: they are sent one batch after the other, each of
// what SQS takes.
func TestR29ManyOfAKeyInOrder(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[int][]int{10: {10, 10, 5}, 400 << 10: {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1}} {
		var got []int
		for _, batch := range sqsqueue.Batches(keyed(t, slices.Repeat([]string{"a"}, 25), func(string) int {
			return bytes
		})) {
			got = append(got, len(batch))
		}
		if !slices.Equal(got, want) {
			t.Errorf("of %d bytes each: batches of %v, want %v", bytes, got, want)
		}
	}
}

// Of an inbox's group each message is a batch of its own: one that is taken in part would be out of order.
func TestInOrderABatchHasOneOfAGroup(t *testing.T) {
	t.Parallel()
	entries := []sqsqueue.Entry{{ID: 1, Group: "a"}, {ID: 2, Group: "a"}, {ID: 3, Group: "b"}, {ID: 4, Group: "a"}}
	var got [][]int64
	for _, round := range sqsqueue.RoundsOf(sqsqueue.Outgoing{{URL: "url", Entries: entries}}) {
		var ids []int64
		for _, e := range round[0].Entries {
			ids = append(ids, e.ID)
		}
		got = append(got, ids)
	}
	if !slices.EqualFunc(got, [][]int64{{1, 3}, {2}, {4}}, slices.Equal[[]int64]) {
		t.Errorf("rounds %v", got)
	}
}
