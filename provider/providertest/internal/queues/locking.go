package queues

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// Locking tests that a received record and the records of an instance have one holder at a time.
func Locking() kit.Group {
	polling := []kit.Capability{kit.Polling}
	return kit.Group{Name: "locking", Cases: []kit.Case{
		{Name: "ReceivedRecordsAreLocked", Run: fetchedAreLocked, Needs: polling},
		{Name: "InstanceHasOneHolder", Run: oneHolder, Needs: polling},
		{Name: "OtherInstancesAreNotAffected", Run: otherInstances, Needs: polling},
		{Name: "EveryReceiveHasNewTokens", Run: uniqueTokens, Needs: polling},
		{Name: "UnknownTokenIsRejected", Run: unknownToken, Needs: polling},
		{Name: "AcknowledgeDeletesOnlyReceivedRecords", Run: ackRemovesFetched, Needs: polling},
		{Name: "ConcurrentReceiversGetARecordOnce", Run: manyFetchers, Needs: polling},
		{Name: "ConcurrentReceiversKeepOrderOfInstance", Run: manyFetchersOfInstances, Needs: polling},
		{Name: "ReceiveEndsAfterItsWait", Run: emptyFetch, Needs: []kit.Capability{kit.Polling, kit.VirtualTime}},
		{Name: "ReceiveEndsWithItsContext", Run: fetchEnds, Needs: polling, Visibility: kit.ShortLock},
		{Name: "WrongArgumentsAreNamed", Run: wrongPolls, Needs: polling},
		{Name: "FailedReceiveNamesItsOperation", Run: failedFetch, Needs: []kit.Capability{kit.Polling, kit.Faults}},
		{Name: "FailedRenewalLosesNothing", Run: failedRenewal, Needs: []kit.Capability{kit.Polling, kit.Faults}},
	}}
}

func fetchedAreLocked(f *kit.Fixture) {
	f.StartWithoutWake("a").Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	f.Enqueue(kit.Fired("b", 1))
	for _, queue := range []string{kit.Queue, provider.QueueInbox} {
		before := f.Now()
		r := f.Fetch(queue, 1)[0]
		f.WantNone(queue, "fetched")
		if until := r.LockedUntil(); until.Before(before.Add(kit.LongVisibility)) ||
			until.After(f.Now().Add(kit.LongVisibility)) || !r.Held(f.Now()) {
			f.T.Errorf("received at %v, locked for %v until %v", before, kit.LongVisibility, until)
		}
		if r.ID == "" || r.ReceiptHandle == "" || r.Body == "" || r.ReceiveCount != 1 ||
			(queue == provider.QueueInbox) != (r.Group != "" && r.Sequence != "") {
			f.T.Errorf("record of %s: got %s", queue, kit.Text(r))
		}
	}
}

func oneHolder(f *kit.Fixture) {
	f.Enqueue(kit.Fired("a", 1))
	first := f.Fetch(provider.QueueInbox, 1)
	f.Enqueue(kit.Fired("a", 2), kit.Fired("a", 3))
	f.WantNone(provider.QueueInbox, "while the instance is locked")
	f.Must(f.Provider.DeleteRecords(f.Ctx(), provider.QueueInbox, first...))
	wantTimers(f, adopted(f, f.Fetch(provider.QueueInbox, 2)), 2, 2)
}

// adopted returns the messages of inbox records.
func adopted(f *kit.Fixture, records []provider.Record) (all []provider.InboxMessage) {
	f.T.Helper()
	items, bad := f.Provider.DecodeOrchestrationItems(records)
	if len(bad) > 0 {
		f.T.Fatalf("unreadable: got %v", bad)
	}
	for _, it := range items {
		all = append(all, it.Messages...)
	}
	return all
}

func otherInstances(f *kit.Fixture) {
	f.Enqueue(kit.Fired("a", 1))
	f.Fetch(provider.QueueInbox, 1)
	f.Enqueue(kit.Fired("a", 2), kit.Fired("b", 1))
	if ms := adopted(f, f.Fetch(provider.QueueInbox, 1)); ms[0].InstanceID != "b" {
		f.T.Errorf("received a message of %q, want one of b", ms[0].InstanceID)
	}
}

func uniqueTokens(f *kit.Fixture) {
	f.StartWithoutWake("a").Commit(append([]history.Event{kit.TurnStarted()},
		kit.Repeat(15, kit.Activity(kit.Queue))...)...)
	seen := map[string]bool{}
	for range 2 {
		records := f.Fetch(kit.Queue, 15)
		for _, r := range records {
			if seen[r.ReceiptHandle] {
				f.T.Errorf("receipt handle %q was returned twice", r.ReceiptHandle)
			}
			seen[r.ReceiptHandle] = true
		}
		f.Must(f.Provider.AbandonRecords(f.Ctx(), kit.Queue, 0, records...))
	}
}

func unknownToken(f *kit.Fixture) {
	made := kit.Record(1, "x")
	made.Hold = provider.NewHold(f.Now(), time.Minute)
	wantLost(f, renew(f, kit.Queue, time.Minute, made), made)
	if made.Held(f.Now()) {
		f.T.Error("unknown record is reported as locked")
	}
}

// renew renews records and returns the lost ones. An error fails the test.
func renew(f *kit.Fixture, queue string, lock time.Duration, records ...provider.Record) []provider.Record {
	f.T.Helper()
	lost, err := f.Polling().RenewRecords(f.Ctx(), queue, lock, records...)
	f.Must(err)
	return lost
}

func wantLost(f *kit.Fixture, lost []provider.Record, want ...provider.Record) {
	f.T.Helper()
	if len(lost) != len(want) {
		f.T.Fatalf("%d locks are lost, want %d", len(lost), len(want))
	}
	for i := range want {
		if lost[i].ID != want[i].ID {
			f.T.Errorf("lock of record %s is lost, want record %s", lost[i].ID, want[i].ID)
		}
		if !want[i].Hold.Ended() {
			f.T.Errorf("lock of record %s is lost, but the record is reported as locked", lost[i].ID)
		}
	}
}

// ackRemovesFetched checks that the acknowledgement of a turn deletes only the messages that were received for the
// turn.
func ackRemovesFetched(f *kit.Fixture) {
	e := f.Start("a")
	fetched := f.Fetch(provider.QueueInbox, 1)
	f.Enqueue(kit.Fired("a", 1), kit.Fired("a", 2))
	items, _ := f.Provider.DecodeOrchestrationItems(fetched)
	t := e.Turn(kit.TurnStarted(), kit.Activity(kit.Queue))
	t.LockedUntil = items[0].LockedUntil()
	_, err := f.Provider.AckOrchestrationItem(f.Ctx(), t)
	f.Must(err)
	f.Must(f.Provider.DeleteRecords(f.Ctx(), provider.QueueInbox, fetched...))
	wantTimers(f, adopted(f, f.Fetch(provider.QueueInbox, 2)), 1, 2)
}

// fetchers runs handlers in goroutines until this number of records was handled.
func fetchers(f *kit.Fixture, goroutines int, queue string, records int, handle func(records []provider.Record)) {
	f.T.Helper()
	p := f.Polling()
	ctx, stop := context.WithCancel(f.Ctx())
	defer stop()
	var mu sync.Mutex
	handled := 0
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for ctx.Err() == nil {
				fetched, err := p.FetchRecords(ctx, queue)
				if err != nil {
					if ctx.Err() == nil {
						f.T.Error(err)
						stop()
					}
					return
				}
				handle(fetched)
				mu.Lock()
				if handled += len(fetched); handled >= records {
					stop()
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if handled != records {
		f.T.Errorf("%d records were processed, want %d", handled, records)
	}
}

func manyFetchers(f *kit.Fixture) {
	const items = 60
	f.StartWithoutWake("a").Commit(append([]history.Event{kit.TurnStarted()},
		kit.Repeat(items, kit.Activity(kit.Queue))...)...)
	var mu sync.Mutex
	seen := map[string]int{}
	fetchers(f, 6, kit.Queue, items, func(records []provider.Record) {
		for _, r := range records {
			mu.Lock()
			seen[r.ID]++
			mu.Unlock()
			if err := f.Provider.DeleteRecords(f.Ctx(), kit.Queue, r); err != nil {
				f.T.Error(err)
			}
		}
	})
	if len(seen) != items {
		f.T.Errorf("got %d different records, want %d", len(seen), items)
	}
	f.WantNone(kit.Queue, "all done")
}

// manyFetchersOfInstances checks that one holder at a time handles the messages of an instance, in order.
func manyFetchersOfInstances(f *kit.Fixture) {
	const instances, each = 5, 12
	for n := range int64(each) {
		for id := range instances {
			f.Enqueue(kit.Fired(string(rune('a'+id)), n+1))
		}
	}
	h := holders{f: f, held: map[string]bool{}, last: map[string]int64{}}
	fetchers(f, 6, provider.QueueInbox, instances*each, func(records []provider.Record) {
		items, _ := f.Provider.DecodeOrchestrationItems(records)
		h.take(items)
		if lost, err := f.Polling().RenewRecords(f.Ctx(), provider.QueueInbox, time.Minute, records...); err != nil ||
			len(lost) > 0 {
			f.T.Errorf("got %d lost records, error %v", len(lost), err) // others can receive in the meantime
		}
		h.release(items)
		if err := f.Provider.DeleteRecords(f.Ctx(), provider.QueueInbox, records...); err != nil {
			f.T.Error(err)
		}
	})
}

// holders checks the holder of each instance and the last message of each instance.
type holders struct {
	f    *kit.Fixture
	mu   sync.Mutex
	held map[string]bool
	last map[string]int64
}

func (h *holders) take(items []*provider.OrchestrationItem) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, it := range items {
		if h.held[it.InstanceID] {
			h.f.T.Errorf("instance %s is locked by two receivers", it.InstanceID)
		}
		h.held[it.InstanceID] = true
		for i := range it.Messages {
			if n := it.Messages[i].TimerID; n != h.last[it.InstanceID]+1 {
				h.f.T.Errorf("instance %s: got message %d after %d", it.InstanceID, n, h.last[it.InstanceID])
			}
			h.last[it.InstanceID] = it.Messages[i].TimerID
		}
	}
}

func (h *holders) release(items []*provider.OrchestrationItem) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, it := range items {
		h.held[it.InstanceID] = false
	}
}

func emptyFetch(f *kit.Fixture) {
	began := f.Now()
	records, err := f.Polling().FetchRecords(f.Ctx(), kit.Queue)
	if took := f.Now().Sub(began); err != nil || len(records) > 0 || took < time.Second || took > kit.LongVisibility/2 {
		f.T.Errorf("got %d records, error %v, after %v", len(records), err, took)
	}
}

func fetchEnds(f *kit.Fixture) {
	ctx, cancel := context.WithTimeout(f.Ctx(), 50*time.Millisecond)
	defer cancel()
	began := f.Now()
	_, err := f.Polling().FetchRecords(ctx, kit.Queue)
	if e, ok := errors.AsType[*provider.Error](err); !ok || !e.Retryable || f.Now().Sub(began) > 10*time.Second {
		f.T.Errorf("got error %v after %v, want a retryable *provider.Error", err, f.Now().Sub(began))
	}
	f.StartWithoutWake("a").Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	// A service may not observe the end of the receive, and deliver the record. Such a record is redelivered when its
	// lock expires.
	var records []provider.Record
	for deadline := f.Now().Add(3 * kit.ShortLock); len(records) == 0 && f.Now().Before(deadline); {
		records, err = f.Polling().FetchRecords(f.Ctx(), kit.Queue)
		f.Must(err)
	}
	if len(records) != 1 {
		f.T.Errorf("received %d records after the cancelled receive, want 1", len(records))
	}
}

func wrongPolls(f *kit.Fixture) {
	p := f.Polling()
	_, fetched := p.FetchRecords(f.Ctx(), "nowhere")
	_, renewed := p.RenewRecords(f.Ctx(), "nowhere", time.Minute, kit.Record(1, "x"))
	_, none := p.RenewRecords(f.Ctx(), kit.Queue, 0, kit.Record(1, "x"))
	_, long := p.RenewRecords(f.Ctx(), kit.Queue, 12*time.Hour+time.Second, kit.Record(1, "x"))
	for name, err := range map[string]error{"queue": fetched, "queue ": renewed, "lock": none, "lock ": long} {
		if field, ok := errors.AsType[*provider.FieldError](err); !ok || field.Field != strings.TrimSpace(name) {
			f.T.Errorf("got error %v, want a FieldError of %s", err, name)
		}
	}
	wantLost(f, renew(f, kit.Queue, time.Minute)) // nothing to renew
}

func failedFetch(f *kit.Fixture) {
	f.StartWithoutWake("a").Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	f.Fail(kit.Fault{Operation: kit.Receive, Failure: kit.Rejected, Times: 1})
	_, err := f.Polling().FetchRecords(f.Ctx(), kit.Queue)
	f.WantPermanent(err)
	f.Fail(kit.Fault{Operation: kit.Receive, Failure: kit.Throttled, Times: 2})
	f.Fetch(kit.Queue, 1)
}

func failedRenewal(f *kit.Fixture) {
	f.StartWithoutWake("a").Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	r := f.Fetch(kit.Queue, 1)[0]
	until := r.LockedUntil()
	f.Fail(kit.Fault{Operation: kit.Delay, Failure: kit.Rejected, Times: 1})
	lost, err := f.Polling().RenewRecords(f.Ctx(), kit.Queue, time.Hour, r)
	f.WantPermanent(err)
	wantLost(f, lost)
	if !r.LockedUntil().Equal(until) {
		f.T.Errorf("locked until %v after a rejected renewal, want %v", r.LockedUntil(), until)
	}
	f.Fail(kit.Fault{Operation: kit.Delay, Failure: kit.Throttled, Times: 2})
	wantLost(f, renew(f, kit.Queue, time.Hour, r))
	if !r.LockedUntil().After(until) {
		f.T.Error("the renewal had no effect")
	}
}
