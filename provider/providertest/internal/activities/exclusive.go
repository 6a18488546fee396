package activities

import (
	"slices"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// exclusiveKey checks that records of other keys are delivered while records of a key are locked, but no other record
// of that key. After the locked records are deleted, the next records arrive in order.
func exclusiveKey(f *kit.Fixture) {
	queue := history.ExclusiveQueue(kit.Queue)
	events := []history.Event{kit.TurnStarted(), kit.Exclusively(kit.Queue, "b")}
	const ofA = 11 // more than a batch
	for range ofA {
		events = append(events, kit.Exclusively(kit.Queue, "a"))
	}
	f.Start("a").Commit(events...)
	came := map[string][]int64{}
	for range 2 * ofA {
		items := f.Locked(queue)
		items = append(items, ofOtherKeys(f, queue, items)...)
		for i := range items {
			came[items[i].ExclusiveKey] = append(came[items[i].ExclusiveKey], items[i].ActivityID)
			f.Must(f.Provider.DeleteRecords(f.Ctx(), queue, items[i].Record))
		}
	}
	if len(came["a"]) != ofA || len(came["b"]) != 1 || !slices.IsSorted(came["a"]) {
		f.T.Errorf("activities received by key: got %v", came)
	}
}

// ofOtherKeys receives items while other items are locked, and fails if an item with the key of a locked item arrives.
func ofOtherKeys(f *kit.Fixture, queue string, held []provider.LockedWorkItem) []provider.LockedWorkItem {
	f.T.Helper()
	more := f.Locked(queue)
	for i := range more {
		if slices.ContainsFunc(held, func(h provider.LockedWorkItem) bool {
			return h.ExclusiveKey == more[i].ExclusiveKey
		}) {
			f.T.Errorf("activity %d with key %q was delivered while another one with the same key is running",
				more[i].ActivityID, more[i].ExclusiveKey)
		}
	}
	return more
}

// exclusiveResent checks that a repeated dispatch adds no copy. A resent work item and a work item of another attempt
// are not duplicates.
func exclusiveResent(f *kit.Fixture) {
	queue := history.ExclusiveQueue(kit.Queue)
	f.Start("a").Commit(kit.TurnStarted(), kit.Exclusively(kit.Queue, "a"))
	records := f.Receive(queue)
	items, _ := f.Provider.DecodeWorkItems(f.Ctx(), records)
	if len(items) != 1 {
		f.T.Fatalf("got %d work items, want 1", len(items))
	}
	f.Must(f.Provider.DeleteRecords(f.Ctx(), queue, records...))
	copied, anew, next := items[0].WorkItem, items[0].WorkItem, items[0].WorkItem
	anew.ResendCount++
	next.Attempt++
	for _, again := range []struct {
		item provider.WorkItem
		come int
	}{{copied, 0}, {anew, 1}, {next, 1}} {
		f.Must(f.Provider.PutWorkItems(f.Ctx(), again.item))
		if got := len(f.Drain(queue)); got != again.come {
			f.T.Errorf("attempt %d, resend %d: %d delivered, want %d", again.item.Attempt, again.item.ResendCount,
				got, again.come)
		}
	}
}

func exclusiveRefused(f *kit.Fixture) {
	t := f.Start("a").Turn(kit.TurnStarted(), kit.Exclusively(kit.OtherQueue, "a"))
	refused, err := f.Provider.AckOrchestrationItem(f.Ctx(), t)
	f.Must(err)
	wantRefused(f, refused)
}
