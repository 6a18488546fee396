package queues

import (
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// LockExpiry tests that a former holder cannot use a record after its lock has expired or was released.
func LockExpiry() kit.Group {
	g := kit.Group{Name: "lock expiry", Cases: []kit.Case{
		{Name: "AnExpiredRecordIsFetchedAgain", Run: fetchedAgain},
		{Name: "AnAbandonedRecordIsFetchedAtOnce", Run: pollAbandonedAtOnce},
		{Name: "AnAbandonedRecordIsFetchedAfterItsDelay", Run: pollAbandonedWithDelay},
		{Name: "ARenewalExtendsTheLock", Run: renewalExtends},
		{Name: "MoreRenewalsThanABatchHolds", Run: manyRenewals},
		{Name: "ARenewalAfterExpiryFails", Run: renewalAfterExpiry},
		{Name: "ALostRecordDoesNotHinderTheOthers", Run: renewalOfSome},
		{Name: "ARenewalAfterAckFails", Run: renewalAfterAck},
		{Name: "ATurnIsNotCommittedAfterItsLock", Run: turnAfterLock},
		{Name: "ATurnIsCommittedUnderARenewedLock", Run: turnUnderRenewedLock},
		{Name: "AnOutcomeIsNotSentAfterItsLock", Run: outcomeAfterLock},
		{Name: "AnAbandonAfterExpiryLeavesTheNextHolderAlone", Run: abandonAfterExpiry},
		{
			Name: "ARenewalAfterExpiryLeavesTheNextHolderAlone", Run: renewalOfAnother,
			Needs: []kit.Capability{kit.StrictLocks},
		},
		{
			Name: "ADeletionAfterExpiryLeavesTheNextHolderAlone", Run: deletionAfterExpiry,
			Needs: []kit.Capability{kit.StrictLocks},
		},
		{Name: "LocksEndAfterTwelveHours", Run: twelveHours, Needs: []kit.Capability{kit.StrictLocks, kit.VirtualTime}},
	}}
	for i := range g.Cases {
		g.Cases[i].Visibility = kit.ShortLock
		g.Cases[i].Needs = append([]kit.Capability{kit.Polling}, g.Cases[i].Needs...)
	}
	return g
}

// lockedActivities commits a turn of n activities and receives their records.
func lockedActivities(f *kit.Fixture, n int) []provider.Record {
	f.T.Helper()
	f.StartWithoutWake("a").Commit(append([]history.Event{kit.TurnStarted()},
		kit.Repeat(n, kit.Activity(kit.Queue))...)...)
	return f.Fetch(kit.Queue, n)
}

func fetchedAgain(f *kit.Fixture) {
	first := lockedActivities(f, 1)[0]
	f.WantNone(kit.Queue, "before the lock ends")
	f.Advance(kit.PastLock)
	again := f.Fetch(kit.Queue, 1)[0]
	if again.ID != first.ID || again.ReceiveCount != 2 || again.ReceiptHandle == first.ReceiptHandle {
		f.T.Errorf("received %s, then %s", kit.Text(first), kit.Text(again))
	}
	if first.Held(f.Now()) || !again.Held(f.Now()) {
		f.T.Errorf("lock held by the first receive: %v, by the second: %v", first.Held(f.Now()), again.Held(f.Now()))
	}
}

func pollAbandonedAtOnce(f *kit.Fixture) {
	first := lockedActivities(f, 1)
	f.Must(f.Provider.AbandonRecords(f.Ctx(), kit.Queue, 0, first...))
	if first[0].Held(f.Now()) {
		f.T.Error("released record is still locked")
	}
	if again := f.Fetch(kit.Queue, 1)[0]; again.ID != first[0].ID || again.ReceiveCount != 2 {
		f.T.Errorf("received %s", kit.Text(again))
	}
}

func pollAbandonedWithDelay(f *kit.Fixture) {
	f.Must(f.Provider.AbandonRecords(f.Ctx(), kit.Queue, 2*time.Second, lockedActivities(f, 2)...))
	f.WantNone(kit.Queue, "before the delay has passed")
	f.Advance(2500 * time.Millisecond)
	f.Fetch(kit.Queue, 2)
}

func renewalExtends(f *kit.Fixture) {
	r := lockedActivities(f, 1)[0]
	earlier := r // copies of a record share its renewals
	now := f.Now()
	wantLost(f, renew(f, kit.Queue, kit.LongLock, r))
	if until := earlier.LockedUntil(); until.Before(now.Add(kit.LongLock)) || until.After(f.Now().Add(kit.LongLock)) {
		f.T.Errorf("renewed for %v at %v, and locked until %v", kit.LongLock, now, until)
	}
	f.Advance(kit.PastLock)
	f.WantNone(kit.Queue, "after the first lock")
	wantLost(f, renew(f, kit.Queue, time.Second, r)) // even with a shorter lock
	f.Advance(2 * time.Second)
	f.Fetch(kit.Queue, 1)
}

func manyRenewals(f *kit.Fixture) {
	records := lockedActivities(f, 23)
	wantLost(f, renew(f, kit.Queue, kit.LongLock, records...))
	f.Advance(kit.PastLock)
	f.WantNone(kit.Queue, "after the first lock")
	wantLost(f, renew(f, kit.Queue, kit.LongLock, records...))
}

func renewalAfterExpiry(f *kit.Fixture) {
	r := lockedActivities(f, 1)[0]
	f.Advance(kit.PastLock)
	wantLost(f, renew(f, kit.Queue, kit.LongLock, r), r)
	f.Fetch(kit.Queue, 1)
	wantLost(f, renew(f, kit.Queue, kit.LongLock, r), r)
}

func renewalOfSome(f *kit.Fixture) {
	records := lockedActivities(f, 3)
	wantLost(f, renew(f, kit.Queue, kit.LongLock, records[0], records[2]))
	f.Advance(kit.PastLock)
	wantLost(f, renew(f, kit.Queue, kit.LongLock, records...), records[1])
	if !records[0].Held(f.Now()) || !records[2].Held(f.Now()) {
		f.T.Error("renewed record is not locked")
	}
}

func renewalAfterAck(f *kit.Fixture) {
	records := lockedActivities(f, 2)
	f.Must(f.Provider.DeleteRecords(f.Ctx(), kit.Queue, records[0]))
	wantLost(f, renew(f, kit.Queue, kit.LongLock, records...), records[0])
}

// fetchedTurn receives an instance's wake and creates its first turn.
func fetchedTurn(f *kit.Fixture) (*kit.Execution, *provider.OrchestrationItem, *provider.Turn) {
	f.T.Helper()
	e := f.Start("a")
	items, _ := f.Provider.DecodeOrchestrationItems(f.Fetch(provider.QueueInbox, 1))
	return e, items[0], e.Turn(kit.TurnStarted(), kit.Activity(kit.Queue), kit.Timer(f.StoredNow()))
}

func turnAfterLock(f *kit.Fixture) {
	e, item, t := fetchedTurn(f)
	f.Advance(kit.PastLock)
	t.LockedUntil = item.LockedUntil()
	_, err := f.Provider.AckOrchestrationItem(f.Ctx(), t)
	f.WantErrorIs(err, provider.ErrLockLost)
	e.WantSegments()
	f.WantNothingSent()
	f.WantStatus("a", provider.StatusPending)
	t.LockedUntil = lockedAgain(f, e.Instance.InstanceID)
	_, err = f.Provider.AckOrchestrationItem(f.Ctx(), t) // committed by the next holder
	f.Must(err)
	e.WantSegments(t)
}

// lockedAgain receives from the inbox and returns the time when the instance's lock expires.
func lockedAgain(f *kit.Fixture, id string) time.Time {
	f.T.Helper()
	items, _ := f.Provider.DecodeOrchestrationItems(f.Fetch(provider.QueueInbox, 1))
	if items[0].InstanceID != id {
		f.T.Fatalf("received instance %s, want %s", items[0].InstanceID, id)
	}
	return items[0].LockedUntil()
}

func turnUnderRenewedLock(f *kit.Fixture) {
	e, item, t := fetchedTurn(f)
	wantLost(f, renew(f, provider.QueueInbox, kit.LongLock, item.Messages[0].Record))
	f.Advance(kit.PastLock)
	t.LockedUntil = item.LockedUntil()
	_, err := f.Provider.AckOrchestrationItem(f.Ctx(), t)
	f.Must(err)
	e.WantSegments(t)
}

func outcomeAfterLock(f *kit.Fixture) {
	records := lockedActivities(f, 3)
	items, _ := f.Provider.DecodeWorkItems(f.Ctx(), records)
	wantLost(f, renew(f, kit.Queue, kit.LongLock, records[1]))
	f.Advance(kit.PastLock)
	failed, err := f.Provider.AckWorkItems(f.Ctx(), kit.Queue, kit.Done(items, kit.SmallResult))
	f.WantErrorIs(err, provider.ErrLockLost)
	if len(failed) != 2 || failed[0].ID != records[0].ID || failed[1].ID != records[2].ID {
		f.T.Errorf("failed: %s", kit.Text(failed))
	}
	ms := f.Messages()
	if len(ms) != 1 || len(ms[0].Outcomes) != 1 || ms[0].Outcomes[0].ActivityID != items[1].ActivityID {
		f.T.Errorf("sent: %s, want only the outcome of #%d", kit.Text(ms), items[1].ActivityID)
	}
	f.Fetch(kit.Queue, 2) // the other records remain in the queue to run again
}

func abandonAfterExpiry(f *kit.Fixture) {
	first := lockedActivities(f, 1)
	f.Advance(kit.PastLock)
	wantLost(f, renew(f, kit.Queue, kit.LongLock, f.Fetch(kit.Queue, 1)...))
	f.Must(f.Provider.AbandonRecords(f.Ctx(), kit.Queue, 0, first...))
	f.WantNone(kit.Queue, "released without holding the lock")
}

// slow returns the record for a process whose clock has stopped.
func slow(f *kit.Fixture, r provider.Record) provider.Record {
	r.Hold = provider.NewHold(f.Now(), kit.LongLock)
	return r
}

func renewalOfAnother(f *kit.Fixture) {
	first := slow(f, lockedActivities(f, 1)[0])
	f.Advance(kit.PastLock)
	f.Fetch(kit.Queue, 1)
	wantLost(f, renew(f, kit.Queue, kit.LongLock, first), first)
	f.Advance(kit.PastLock)
	f.Fetch(kit.Queue, 1) // the second lock has expired on time
}

func deletionAfterExpiry(f *kit.Fixture) {
	f.Enqueue(kit.Fired("a", 1))
	first := slow(f, f.Fetch(provider.QueueInbox, 1)[0])
	f.Advance(kit.PastLock)
	second := f.Fetch(provider.QueueInbox, 1)
	if err := f.Provider.DeleteRecords(f.Ctx(), provider.QueueInbox, first); err == nil {
		f.T.Error("deletion with an expired lock was accepted")
	}
	f.Must(f.Provider.AbandonRecords(f.Ctx(), provider.QueueInbox, 0, second...))
	f.Fetch(provider.QueueInbox, 1)
}

func twelveHours(f *kit.Fixture) {
	r := lockedActivities(f, 1)[0]
	wantLost(f, renew(f, kit.Queue, 11*time.Hour, r))
	f.Advance(10 * time.Hour)
	until := r.LockedUntil()
	lost, err := f.Polling().RenewRecords(f.Ctx(), kit.Queue, 3*time.Hour, r)
	f.WantPermanent(err)
	wantLost(f, lost)
	renewals, err := f.Provider.RenewWorkItemLocks(f.Ctx(), kit.Queue, 3*time.Hour, provider.LockedWorkItem{Record: r})
	f.WantPermanent(err)
	f.WantErrorIs(renewals[0].Err, provider.ErrLockLimit)
	if renewals[0].Lost || !renewals[0].Until.IsZero() {
		f.T.Errorf("%+v", renewals[0])
	}
	if !r.LockedUntil().Equal(until) || !r.Held(f.Now()) {
		f.T.Errorf("locked until %v, want %v", r.LockedUntil(), until)
	}
	wantLost(f, renew(f, kit.Queue, 90*time.Minute, r))
}
