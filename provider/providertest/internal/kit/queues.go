package kit

import (
	"strconv"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Lock times. PastLock is a time after which a lock of ShortLock has expired.
const (
	ShortLock = 3 * time.Second
	PastLock  = 4 * time.Second
	LongLock  = 30 * time.Second
)

// Polling returns the provider as a Poller.
func (f *Fixture) Polling() provider.Poller {
	f.T.Helper()
	p, ok := f.Provider.(provider.Poller)
	if !ok {
		f.T.Fatalf("capability %q is declared, but %T is not a provider.Poller", Polling, f.Provider)
	}
	return p
}

// Fetch receives n records of a queue, in one or more calls.
func (f *Fixture) Fetch(queue string, n int) (all []provider.Record) {
	f.T.Helper()
	for len(all) < n {
		records, err := f.Polling().FetchRecords(f.Ctx(), queue)
		f.Must(err)
		if len(records) == 0 {
			break
		}
		all = append(all, records...)
	}
	if len(all) != n {
		f.T.Fatalf("received %d records of %s, want %d", len(all), queue, n)
	}
	return all
}

// WantNone fails if a record of the queue is visible.
func (f *Fixture) WantNone(queue, when string) {
	f.T.Helper()
	if records := f.Receive(queue); len(records) > 0 {
		f.T.Errorf("%s: got %d visible records of %s, want none", when, len(records), queue)
	}
}

// WantCrashes marks an attempt, and fails if the number of attempts that died before differs.
func (f *Fixture) WantCrashes(a provider.Delivery, want int) {
	f.T.Helper()
	crashes, err := f.Provider.PutCrashMarker(f.Ctx(), a)
	f.Must(err)
	if crashes != want {
		f.T.Errorf("got %d crashes before delivery %d of %s, want %d",
			crashes, a.Record.ReceiveCount, a.Record.ID, want)
	}
}

// Enqueue sends messages to the inbox.
func (f *Fixture) Enqueue(ms ...provider.Message) {
	f.T.Helper()
	f.Must(f.Provider.EnqueueForOrchestrator(f.Ctx(), ms...))
}

// WantWork fails if the queue does not have work items of exactly these activities.
func (f *Fixture) WantWork(queue string, want ...int64) {
	f.T.Helper()
	got := []int64{}
	for _, w := range f.Work(queue) {
		got = append(got, w.ActivityID)
	}
	f.WantEqual("activities in "+queue, got, append([]int64{}, want...))
}

// LongVisibility is a visibility timeout that does not expire during a test.
const LongVisibility = time.Minute

// Done completes work items with the given outcomes.
func Done(items []provider.LockedWorkItem, outcome func(n int) provider.ActivityOutcome) []provider.CompletedWorkItem {
	all := make([]provider.CompletedWorkItem, len(items))
	for i, it := range items {
		o := outcome(i)
		o.ActivityID, o.Attempt = it.ActivityID, it.Attempt
		all[i] = provider.CompletedWorkItem{LockedWorkItem: &it, Outcome: &o}
	}
	return all
}

// SmallResult returns an outcome with the number as its result.
func SmallResult(n int) provider.ActivityOutcome {
	return provider.ActivityOutcome{Result: history.Payload(strconv.Itoa(n))}
}

// Acknowledge acknowledges work items. All must succeed.
func (f *Fixture) Acknowledge(queue string, items []provider.CompletedWorkItem) {
	f.T.Helper()
	if failed, err := f.Provider.AckWorkItems(f.Ctx(), queue, items); err != nil || len(failed) > 0 {
		f.T.Fatalf("acknowledge: failed %v, error %v", failed, err)
	}
}
