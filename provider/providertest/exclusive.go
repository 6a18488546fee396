package providertest

import (
	"slices"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// exclusively returns an activity with an exclusive key (R29).
func exclusively(queue, key string) history.Event {
	e := activity(history.ExclusiveQueue(queue))
	e.ExclusiveKey = key
	return e
}

// While records of a key are locked, no other record of the key is delivered, but those of other keys are. After they
// are deleted, the next ones arrive in order.
func exclusiveKey(f *fixture) {
	queue := history.ExclusiveQueue(Queue)
	events := []history.Event{turnStarted(), exclusively(Queue, "b")}
	const ofA = 11 // more than a batch
	for range ofA {
		events = append(events, exclusively(Queue, "a"))
	}
	f.start("a").commit(events...)
	came := map[string][]int64{}
	for range 2 * ofA {
		items := f.locked(queue)
		items = append(items, f.ofOtherKeys(queue, items)...)
		for i := range items {
			came[items[i].ExclusiveKey] = append(came[items[i].ExclusiveKey], items[i].ActivityID)
			f.must(f.p.DeleteRecords(f.ctx(), queue, items[i].Record))
		}
	}
	if len(came["a"]) != ofA || len(came["b"]) != 1 || !slices.IsSorted(came["a"]) {
		f.t.Errorf("activities received by key: %v", came)
	}
}

// ofOtherKeys receives again while items are locked, and fails if an item with one of their keys arrives.
func (f *fixture) ofOtherKeys(queue string, held []provider.LockedWorkItem) []provider.LockedWorkItem {
	f.t.Helper()
	more := f.locked(queue)
	for i := range more {
		if slices.ContainsFunc(held, func(h provider.LockedWorkItem) bool { return h.ExclusiveKey == more[i].ExclusiveKey }) {
			f.t.Errorf("activity %d with key %q was delivered while another one with the same key is running",
				more[i].ActivityID, more[i].ExclusiveKey)
		}
	}
	return more
}

// A repeated dispatch adds no copy. A resent work item and one of another attempt are no repetitions.
func exclusiveAgain(f *fixture) {
	queue := history.ExclusiveQueue(Queue)
	f.start("a").commit(turnStarted(), exclusively(Queue, "a"))
	records := f.Receive(queue)
	items, _ := f.p.DecodeWorkItems(f.ctx(), records)
	if len(items) != 1 {
		f.t.Fatalf("%d work items, want 1", len(items))
	}
	f.must(f.p.DeleteRecords(f.ctx(), queue, records...))
	copied, anew, next := items[0].WorkItem, items[0].WorkItem, items[0].WorkItem
	anew.ResendCount++
	next.Attempt++
	for _, again := range []struct {
		item provider.WorkItem
		come int
	}{{copied, 0}, {anew, 1}, {next, 1}} {
		f.must(f.p.PutWorkItems(f.ctx(), again.item))
		if got := len(f.drain(queue)); got != again.come {
			f.t.Errorf("attempt %d, resend %d: %d delivered, want %d", again.item.Attempt, again.item.ResendCount,
				got, again.come)
		}
	}
}

func exclusiveRefused(f *fixture) {
	t := f.start("a").turn(turnStarted(), exclusively(OtherQueue, "a"))
	refused, err := f.p.AckOrchestrationItem(f.ctx(), t)
	f.must(err)
	f.wantRefused(refused)
}
