package providertest

import (
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

const (
	shortLock = 3 * time.Second
	pastLock  = 4 * time.Second
	longLock  = 30 * time.Second
)

// A lock expires, or its holder releases it. The former holder then cannot use the record any more.
func lockExpiry() group {
	g := group{"lock expiry", []testCase{
		{name: "AnExpiredRecordIsFetchedAgain", run: fetchedAgain},
		{name: "AnAbandonedRecordIsFetchedAtOnce", run: pollAbandonedAtOnce},
		{name: "AnAbandonedRecordIsFetchedAfterItsDelay", run: pollAbandonedWithDelay},
		{name: "ARenewalExtendsTheLock", run: renewalExtends},
		{name: "MoreRenewalsThanABatchHolds", run: manyRenewals},
		{name: "ARenewalAfterExpiryFails", run: renewalAfterExpiry},
		{name: "ALostRecordDoesNotHinderTheOthers", run: renewalOfSome},
		{name: "ARenewalAfterAckFails", run: renewalAfterAck},
		{name: "ATurnIsNotCommittedAfterItsLock", run: turnAfterLock},
		{name: "ATurnIsCommittedUnderARenewedLock", run: turnUnderRenewedLock},
		{name: "AnOutcomeIsNotSentAfterItsLock", run: outcomeAfterLock},
		{name: "AnAbandonAfterExpiryLeavesTheNextHolderAlone", run: abandonAfterExpiry},
		{name: "ARenewalAfterExpiryLeavesTheNextHolderAlone", run: renewalOfAnother, needs: []Capability{StrictLocks}},
		{name: "ADeletionAfterExpiryLeavesTheNextHolderAlone", run: deletionAfterExpiry, needs: []Capability{StrictLocks}},
		{name: "LocksEndAfterTwelveHours", run: twelveHours, needs: []Capability{StrictLocks, VirtualTime}},
	}}
	for i := range g.cases {
		g.cases[i].visibility = shortLock
		g.cases[i].needs = append([]Capability{Polling}, g.cases[i].needs...)
	}
	return g
}

// lockedActivities commits a turn of n activities and receives their records.
func (f *fixture) lockedActivities(n int) []provider.Record {
	f.t.Helper()
	f.quiet("a").commit(append([]history.Event{turnStarted()}, repeat(n, activity(Queue))...)...)
	return f.fetch(Queue, n)
}

func fetchedAgain(f *fixture) {
	first := f.lockedActivities(1)[0]
	f.wantNone(Queue, "before the lock ends")
	f.Advance(pastLock)
	again := f.fetch(Queue, 1)[0]
	if again.ID != first.ID || again.ReceiveCount != 2 || again.ReceiptHandle == first.ReceiptHandle {
		f.t.Errorf("received %s, then %s", text(first), text(again))
	}
	if first.Held(f.Now()) || !again.Held(f.Now()) {
		f.t.Errorf("lock held by the first receive: %v, by the second: %v", first.Held(f.Now()), again.Held(f.Now()))
	}
}

func pollAbandonedAtOnce(f *fixture) {
	first := f.lockedActivities(1)
	f.must(f.p.AbandonRecords(f.ctx(), Queue, 0, first...))
	if first[0].Held(f.Now()) {
		f.t.Error("released record is still locked")
	}
	if again := f.fetch(Queue, 1)[0]; again.ID != first[0].ID || again.ReceiveCount != 2 {
		f.t.Errorf("received %s", text(again))
	}
}

func pollAbandonedWithDelay(f *fixture) {
	f.must(f.p.AbandonRecords(f.ctx(), Queue, 2*time.Second, f.lockedActivities(2)...))
	f.wantNone(Queue, "before the delay has passed")
	f.Advance(2500 * time.Millisecond)
	f.fetch(Queue, 2)
}

func renewalExtends(f *fixture) {
	r := f.lockedActivities(1)[0]
	earlier := r // copies of a record share its renewals
	now := f.Now()
	f.wantLost(f.renew(Queue, longLock, r))
	if until := earlier.LockedUntil(); until.Before(now.Add(longLock)) || until.After(f.Now().Add(longLock)) {
		f.t.Errorf("renewed for %v at %v, and locked until %v", longLock, now, until)
	}
	f.Advance(pastLock)
	f.wantNone(Queue, "after the first lock")
	f.wantLost(f.renew(Queue, time.Second, r)) // also to a shorter one
	f.Advance(2 * time.Second)
	f.fetch(Queue, 1)
}

func manyRenewals(f *fixture) {
	records := f.lockedActivities(23)
	f.wantLost(f.renew(Queue, longLock, records...))
	f.Advance(pastLock)
	f.wantNone(Queue, "after the first lock")
	f.wantLost(f.renew(Queue, longLock, records...))
}

func renewalAfterExpiry(f *fixture) {
	r := f.lockedActivities(1)[0]
	f.Advance(pastLock)
	f.wantLost(f.renew(Queue, longLock, r), r)
	f.fetch(Queue, 1)
	f.wantLost(f.renew(Queue, longLock, r), r)
}

func renewalOfSome(f *fixture) {
	records := f.lockedActivities(3)
	f.wantLost(f.renew(Queue, longLock, records[0], records[2]))
	f.Advance(pastLock)
	f.wantLost(f.renew(Queue, longLock, records...), records[1])
	if !records[0].Held(f.Now()) || !records[2].Held(f.Now()) {
		f.t.Error("renewed record is not locked")
	}
}

func renewalAfterAck(f *fixture) {
	records := f.lockedActivities(2)
	f.must(f.p.DeleteRecords(f.ctx(), Queue, records[0]))
	f.wantLost(f.renew(Queue, longLock, records...), records[0])
}

// fetchedTurn receives an instance's wake and creates its first turn.
func (f *fixture) fetchedTurn() (*execution, *provider.OrchestrationItem, *provider.Turn) {
	f.t.Helper()
	e := f.start("a")
	items, _ := f.p.DecodeOrchestrationItems(f.fetch(provider.QueueInbox, 1))
	return e, items[0], e.turn(turnStarted(), activity(Queue), timer(f.now()))
}

func turnAfterLock(f *fixture) {
	e, item, t := f.fetchedTurn()
	f.Advance(pastLock)
	t.LockedUntil = item.LockedUntil()
	_, err := f.p.AckOrchestrationItem(f.ctx(), t)
	f.wantIs(err, provider.ErrLockLost)
	e.wantSegments()
	f.wantNothingSent()
	f.wantStatus("a", provider.StatusPending)
	t.LockedUntil = f.lockedAgain(e.instance.InstanceID)
	_, err = f.p.AckOrchestrationItem(f.ctx(), t) // by the next holder
	f.must(err)
	e.wantSegments(t)
}

// lockedAgain receives from the inbox and returns the time when the instance's lock expires.
func (f *fixture) lockedAgain(id string) time.Time {
	f.t.Helper()
	items, _ := f.p.DecodeOrchestrationItems(f.fetch(provider.QueueInbox, 1))
	if items[0].InstanceID != id {
		f.t.Fatalf("received instance %s, want %s", items[0].InstanceID, id)
	}
	return items[0].LockedUntil()
}

func turnUnderRenewedLock(f *fixture) {
	e, item, t := f.fetchedTurn()
	f.wantLost(f.renew(provider.QueueInbox, longLock, item.Messages[0].Record))
	f.Advance(pastLock)
	t.LockedUntil = item.LockedUntil()
	_, err := f.p.AckOrchestrationItem(f.ctx(), t)
	f.must(err)
	e.wantSegments(t)
}

func outcomeAfterLock(f *fixture) {
	records := f.lockedActivities(3)
	items, _ := f.p.DecodeWorkItems(f.ctx(), records)
	f.wantLost(f.renew(Queue, longLock, records[1]))
	f.Advance(pastLock)
	failed, err := f.p.AckWorkItems(f.ctx(), Queue, done(items, smallResult))
	f.wantIs(err, provider.ErrLockLost)
	if len(failed) != 2 || failed[0].ID != records[0].ID || failed[1].ID != records[2].ID {
		f.t.Errorf("failed: %s", text(failed))
	}
	ms := f.messages()
	if len(ms) != 1 || len(ms[0].Outcomes) != 1 || ms[0].Outcomes[0].ActivityID != items[1].ActivityID {
		f.t.Errorf("sent: %s, want only the outcome of #%d", text(ms), items[1].ActivityID)
	}
	f.fetch(Queue, 2) // the others remain in the queue to run again
}

func abandonAfterExpiry(f *fixture) {
	first := f.lockedActivities(1)
	f.Advance(pastLock)
	f.wantLost(f.renew(Queue, longLock, f.fetch(Queue, 1)...))
	f.must(f.p.AbandonRecords(f.ctx(), Queue, 0, first...))
	f.wantNone(Queue, "released without holding the lock")
}

// slow returns the record for a process whose clock has stopped.
func (f *fixture) slow(r provider.Record) provider.Record {
	r.Hold = provider.NewHold(f.Now(), longLock)
	return r
}

func renewalOfAnother(f *fixture) {
	first := f.slow(f.lockedActivities(1)[0])
	f.Advance(pastLock)
	f.fetch(Queue, 1)
	f.wantLost(f.renew(Queue, longLock, first), first)
	f.Advance(pastLock)
	f.fetch(Queue, 1) // the second lock has ended when it was to end
}

func deletionAfterExpiry(f *fixture) {
	f.enqueue(fired("a", 1))
	first := f.slow(f.fetch(provider.QueueInbox, 1)[0])
	f.Advance(pastLock)
	second := f.fetch(provider.QueueInbox, 1)
	if err := f.p.DeleteRecords(f.ctx(), provider.QueueInbox, first); err == nil {
		f.t.Error("deletion with an expired lock was accepted")
	}
	f.must(f.p.AbandonRecords(f.ctx(), provider.QueueInbox, 0, second...))
	f.fetch(provider.QueueInbox, 1)
}

func twelveHours(f *fixture) {
	r := f.lockedActivities(1)[0]
	f.wantLost(f.renew(Queue, 11*time.Hour, r))
	f.Advance(10 * time.Hour)
	until := r.LockedUntil()
	lost, err := f.polling().RenewRecords(f.ctx(), Queue, 3*time.Hour, r)
	f.wantPermanent(err)
	f.wantLost(lost)
	renewals, err := f.p.RenewWorkItemLocks(f.ctx(), Queue, 3*time.Hour, provider.LockedWorkItem{Record: r})
	f.wantPermanent(err)
	f.wantIs(renewals[0].Err, provider.ErrLockLimit)
	if renewals[0].Lost || !renewals[0].Until.IsZero() {
		f.t.Errorf("%+v", renewals[0])
	}
	if !r.LockedUntil().Equal(until) || !r.Held(f.Now()) {
		f.t.Errorf("locked until %v, want %v", r.LockedUntil(), until)
	}
	f.wantLost(f.renew(Queue, 90*time.Minute, r))
}
