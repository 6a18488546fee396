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

// keyed returns the entries of activities with exclusive keys, in the order of their calls. The function bytes returns
// the size of an input.
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

// The batches of a round are sent in parallel, in any order, so a round has at most one batch of each key. A batch has
// up to ten entries of a key, within the quotas of SQS.
func TestR29_manyEntriesOfAKey_areSentOneBatchAtATime(t *testing.T) {
	t.Parallel()
	var keys []string
	for i := range 25 { // interleaved, like the calls of code that does not group by key
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
			return 400 << 10 // two fit a batch
		}
		return 10
	}
	rounds := sqsqueue.RoundsOf(sqsqueue.Outgoing{{URL: "url", Entries: keyed(t, keys, heavy)}})
	if len(rounds) != 3 {
		t.Errorf("%d rounds, want 3", len(rounds))
	}

	last, sent := map[string]int64{}, 0
	for n, round := range rounds {
		seen := map[string]bool{}
		for _, batch := range sqsqueue.Batches(round[0].Entries) {
			bytes := 0
			here := map[string]bool{}
			for _, e := range batch {
				if e.ID <= last[e.Group] {
					t.Errorf("round %d: activity %d is sent after activity %d of the same key", n, e.ID, last[e.Group])
				}
				if seen[e.Group] && !here[e.Group] {
					t.Errorf("round %d: the activities of the key of activity %d are in several batches", n, e.ID)
				}
				last[e.Group], seen[e.Group], here[e.Group] = e.ID, true, true
				bytes += len(e.Body)
			}
			sent += len(batch)
			if len(batch) > sqsqueue.BatchLimit || bytes > sqsqueue.MessageLimit {
				t.Errorf("round %d: a batch has %d messages and %d bytes", n, len(batch), bytes)
			}
		}
	}
	if sent != len(keys) {
		t.Errorf("%d of %d messages are sent", sent, len(keys))
	}
}

// A redrive may send many dead letters of one key. Its batches are sent sequentially, and each is as large as SQS
// allows.
func TestR29_deadLettersOfAKey_fillWholeBatches(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[int][]int{10: {10, 10, 5}, 400 << 10: {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1}} {
		var got []int
		for _, batch := range sqsqueue.Batches(keyed(t, slices.Repeat([]string{"a"}, 25), func(string) int {
			return bytes
		})) {
			got = append(got, len(batch))
		}
		if !slices.Equal(got, want) {
			t.Errorf("messages of %d bytes: batches of %v, want %v", bytes, got, want)
		}
	}
}

// Each message of an inbox group has a separate batch, because a partly accepted batch would break the order.
func TestRoundsOf_messageGroup_hasOneMessageInEachRound(t *testing.T) {
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
