package providertest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// A received record, or the records of an instance, have one holder.
func locking() group {
	polling := []Capability{Polling}
	return group{"locking", []testCase{
		{name: "FetchedRecordsAreLocked", run: fetchedAreLocked, needs: polling},
		{name: "AnInstanceHasOneHolder", run: oneHolder, needs: polling},
		{name: "OtherInstancesAreUnhindered", run: unhindered, needs: polling},
		{name: "EveryFetchHasTokensOfItsOwn", run: uniqueTokens, needs: polling},
		{name: "AnUnknownTokenIsRefused", run: unknownToken, needs: polling},
		{name: "AnAckRemovesOnlyWhatWasFetched", run: ackRemovesFetched, needs: polling},
		{name: "ManyFetchersGetARecordOnce", run: manyFetchers, needs: polling},
		{name: "ManyFetchersKeepAnInstancesOrder", run: manyFetchersOfInstances, needs: polling},
		{name: "AFetchIsOverWhenItsWaitIs", run: emptyFetch, needs: []Capability{Polling, VirtualTime}},
		{name: "AFetchEndsWithItsContext", run: fetchEnds, needs: polling, visibility: shortLock},
		{name: "WrongArgumentsAreNamed", run: wrongPolls, needs: polling},
		{name: "AFailedFetchNamesItsOperation", run: failedFetch, needs: []Capability{Polling, Faults}},
		{name: "AFailedRenewalLosesNothing", run: failedRenewal, needs: []Capability{Polling, Faults}},
	}}
}

// polling returns the provider as a Poller.
func (f *fixture) polling() provider.Poller {
	f.t.Helper()
	p, ok := f.p.(provider.Poller)
	if !ok {
		f.t.Fatalf("capability %q is declared, but %T is not a provider.Poller", Polling, f.p)
	}
	return p
}

// fetch receives n records of a queue, in one or more calls.
func (f *fixture) fetch(queue string, n int) (all []provider.Record) {
	f.t.Helper()
	for len(all) < n {
		records, err := f.polling().FetchRecords(f.ctx(), queue)
		f.must(err)
		if len(records) == 0 {
			break
		}
		all = append(all, records...)
	}
	if len(all) != n {
		f.t.Fatalf("received %d records of %s, want %d", len(all), queue, n)
	}
	return all
}

// wantNone fails if a record of the queue is visible.
func (f *fixture) wantNone(queue, when string) {
	f.t.Helper()
	if records := f.Receive(queue); len(records) > 0 {
		f.t.Errorf("%s: %d records of %s are visible, want none", when, len(records), queue)
	}
}

func fetchedAreLocked(f *fixture) {
	f.quiet("a").commit(turnStarted(), activity(Queue))
	f.enqueue(fired("b", 1))
	for _, queue := range []string{Queue, provider.QueueInbox} {
		before := f.Now()
		r := f.fetch(queue, 1)[0]
		f.wantNone(queue, "fetched")
		if until := r.LockedUntil(); until.Before(before.Add(longVisibility)) || until.After(f.Now().Add(longVisibility)) || !r.Held(f.Now()) {
			f.t.Errorf("received at %v, locked for %v until %v", before, longVisibility, until)
		}
		if r.ID == "" || r.ReceiptHandle == "" || r.Body == "" || r.ReceiveCount != 1 || (queue == provider.QueueInbox) != (r.Group != "" && r.Sequence != "") {
			f.t.Errorf("record of %s: %s", queue, text(r))
		}
	}
}

func oneHolder(f *fixture) {
	f.enqueue(fired("a", 1))
	first := f.fetch(provider.QueueInbox, 1)
	f.enqueue(fired("a", 2), fired("a", 3))
	f.wantNone(provider.QueueInbox, "while the instance is locked")
	f.must(f.p.DeleteRecords(f.ctx(), provider.QueueInbox, first...))
	f.wantTimers(f.adopted(f.fetch(provider.QueueInbox, 2)), 2, 2)
}

// adopted returns the messages of inbox records.
func (f *fixture) adopted(records []provider.Record) (all []provider.InboxMessage) {
	f.t.Helper()
	items, bad := f.p.DecodeOrchestrationItems(records)
	if len(bad) > 0 {
		f.t.Fatalf("unreadable: %v", bad)
	}
	for _, it := range items {
		all = append(all, it.Messages...)
	}
	return all
}

func unhindered(f *fixture) {
	f.enqueue(fired("a", 1))
	f.fetch(provider.QueueInbox, 1)
	f.enqueue(fired("a", 2), fired("b", 1))
	if ms := f.adopted(f.fetch(provider.QueueInbox, 1)); ms[0].InstanceID != "b" {
		f.t.Errorf("received a message of %q, want one of b", ms[0].InstanceID)
	}
}

func uniqueTokens(f *fixture) {
	f.quiet("a").commit(append([]history.Event{turnStarted()}, repeat(15, activity(Queue))...)...)
	seen := map[string]bool{}
	for range 2 {
		records := f.fetch(Queue, 15)
		for _, r := range records {
			if seen[r.ReceiptHandle] {
				f.t.Errorf("receipt handle %q was returned twice", r.ReceiptHandle)
			}
			seen[r.ReceiptHandle] = true
		}
		f.must(f.p.AbandonRecords(f.ctx(), Queue, 0, records...))
	}
}

func unknownToken(f *fixture) {
	made := record(1, "x")
	made.Hold = provider.NewHold(f.Now(), time.Minute)
	f.wantLost(f.renew(Queue, time.Minute, made), made)
	if made.Held(f.Now()) {
		f.t.Error("unknown record is reported as locked")
	}
}

// renew renews, which must not fail, and returns the lost records.
func (f *fixture) renew(queue string, lock time.Duration, records ...provider.Record) []provider.Record {
	f.t.Helper()
	lost, err := f.polling().RenewRecords(f.ctx(), queue, lock, records...)
	f.must(err)
	return lost
}

func (f *fixture) wantLost(lost []provider.Record, want ...provider.Record) {
	f.t.Helper()
	if len(lost) != len(want) {
		f.t.Fatalf("%d locks are lost, want %d", len(lost), len(want))
	}
	for i := range want {
		if lost[i].ID != want[i].ID {
			f.t.Errorf("lock of record %s is lost, want record %s", lost[i].ID, want[i].ID)
		}
		if !want[i].Hold.Ended() {
			f.t.Errorf("lock of record %s is lost, but the record is reported as locked", lost[i].ID)
		}
	}
}

// The acknowledgement of a turn deletes the messages that were received for it, and not later ones.
func ackRemovesFetched(f *fixture) {
	e := f.start("a")
	fetched := f.fetch(provider.QueueInbox, 1)
	f.enqueue(fired("a", 1), fired("a", 2))
	items, _ := f.p.DecodeOrchestrationItems(fetched)
	t := e.turn(turnStarted(), activity(Queue))
	t.LockedUntil = items[0].LockedUntil()
	_, err := f.p.AckOrchestrationItem(f.ctx(), t)
	f.must(err)
	f.must(f.p.DeleteRecords(f.ctx(), provider.QueueInbox, fetched...))
	f.wantTimers(f.adopted(f.fetch(provider.QueueInbox, 2)), 1, 2)
}

// fetchers runs handlers in goroutines until this number of records was handled.
func (f *fixture) fetchers(goroutines int, queue string, records int, handle func(records []provider.Record)) {
	f.t.Helper()
	p := f.polling()
	ctx, stop := context.WithCancel(f.ctx())
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
						f.t.Error(err)
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
		f.t.Errorf("%d records were processed, want %d", handled, records)
	}
}

func manyFetchers(f *fixture) {
	const items = 60
	f.quiet("a").commit(append([]history.Event{turnStarted()}, repeat(items, activity(Queue))...)...)
	var mu sync.Mutex
	seen := map[string]int{}
	f.fetchers(6, Queue, items, func(records []provider.Record) {
		for _, r := range records {
			mu.Lock()
			seen[r.ID]++
			mu.Unlock()
			if err := f.p.DeleteRecords(f.ctx(), Queue, r); err != nil {
				f.t.Error(err)
			}
		}
	})
	if len(seen) != items {
		f.t.Errorf("%d different records, want %d", len(seen), items)
	}
	f.wantNone(Queue, "all done")
}

// One holder at a time handles the messages of an instance, in order.
func manyFetchersOfInstances(f *fixture) {
	const instances, each = 5, 12
	for n := range int64(each) {
		for id := range instances {
			f.enqueue(fired(string(rune('a'+id)), n+1))
		}
	}
	h := holders{f: f, held: map[string]bool{}, last: map[string]int64{}}
	f.fetchers(6, provider.QueueInbox, instances*each, func(records []provider.Record) {
		items, _ := f.p.DecodeOrchestrationItems(records)
		h.take(items)
		if lost, err := f.polling().RenewRecords(f.ctx(), provider.QueueInbox, time.Minute, records...); err != nil || len(lost) > 0 {
			f.t.Errorf("%d records lost, error %v", len(lost), err) // others can receive in the meantime
		}
		h.release(items)
		if err := f.p.DeleteRecords(f.ctx(), provider.QueueInbox, records...); err != nil {
			f.t.Error(err)
		}
	})
}

// holders checks the holder of each instance and the last message of each instance.
type holders struct {
	f    *fixture
	mu   sync.Mutex
	held map[string]bool
	last map[string]int64
}

func (h *holders) take(items []*provider.OrchestrationItem) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, it := range items {
		if h.held[it.InstanceID] {
			h.f.t.Errorf("instance %s is locked by two receivers", it.InstanceID)
		}
		h.held[it.InstanceID] = true
		for i := range it.Messages {
			if n := it.Messages[i].TimerID; n != h.last[it.InstanceID]+1 {
				h.f.t.Errorf("instance %s: message %d comes after %d", it.InstanceID, n, h.last[it.InstanceID])
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

func emptyFetch(f *fixture) {
	began := f.Now()
	records, err := f.polling().FetchRecords(f.ctx(), Queue)
	if took := f.Now().Sub(began); err != nil || len(records) > 0 || took < time.Second || took > longVisibility/2 {
		f.t.Errorf("%d records, error %v, after %v", len(records), err, took)
	}
}

func fetchEnds(f *fixture) {
	ctx, cancel := context.WithTimeout(f.ctx(), 50*time.Millisecond)
	defer cancel()
	began := f.Now()
	_, err := f.polling().FetchRecords(ctx, Queue)
	if e, ok := errors.AsType[*provider.Error](err); !ok || !e.Retryable || f.Now().Sub(began) > 10*time.Second {
		f.t.Errorf("error %v after %v, want a retryable *provider.Error", err, f.Now().Sub(began))
	}
	f.quiet("a").commit(turnStarted(), activity(Queue))
	// A service may not notice the end of the receive and deliver the record. The record is redelivered when its lock
	// expires.
	var records []provider.Record
	for deadline := f.Now().Add(3 * shortLock); len(records) == 0 && f.Now().Before(deadline); {
		records, err = f.polling().FetchRecords(f.ctx(), Queue)
		f.must(err)
	}
	if len(records) != 1 {
		f.t.Errorf("received %d records after the cancelled receive, want 1", len(records))
	}
}

func wrongPolls(f *fixture) {
	p := f.polling()
	_, fetched := p.FetchRecords(f.ctx(), "nowhere")
	_, renewed := p.RenewRecords(f.ctx(), "nowhere", time.Minute, record(1, "x"))
	_, none := p.RenewRecords(f.ctx(), Queue, 0, record(1, "x"))
	_, long := p.RenewRecords(f.ctx(), Queue, 12*time.Hour+time.Second, record(1, "x"))
	for name, err := range map[string]error{"queue": fetched, "queue ": renewed, "lock": none, "lock ": long} {
		if field, ok := errors.AsType[*provider.FieldError](err); !ok || field.Field != strings.TrimSpace(name) {
			f.t.Errorf("error %v, want a FieldError of %s", err, name)
		}
	}
	f.wantLost(f.renew(Queue, time.Minute)) // nothing to renew
}

func failedFetch(f *fixture) {
	f.quiet("a").commit(turnStarted(), activity(Queue))
	f.Fail(Fault{Operation: Receive, Failure: Rejected, Times: 1})
	_, err := f.polling().FetchRecords(f.ctx(), Queue)
	f.wantPermanent(err)
	f.Fail(Fault{Operation: Receive, Failure: Throttled, Times: 2})
	f.fetch(Queue, 1)
}

func failedRenewal(f *fixture) {
	f.quiet("a").commit(turnStarted(), activity(Queue))
	r := f.fetch(Queue, 1)[0]
	until := r.LockedUntil()
	f.Fail(Fault{Operation: Delay, Failure: Rejected, Times: 1})
	lost, err := f.polling().RenewRecords(f.ctx(), Queue, time.Hour, r)
	f.wantPermanent(err)
	f.wantLost(lost)
	if !r.LockedUntil().Equal(until) {
		f.t.Errorf("locked until %v after a rejected renewal, want %v", r.LockedUntil(), until)
	}
	f.Fail(Fault{Operation: Delay, Failure: Throttled, Times: 2})
	f.wantLost(f.renew(Queue, time.Hour, r))
	if !r.LockedUntil().After(until) {
		f.t.Error("the renewal had no effect")
	}
}
