package activities

import (
	"slices"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// cancelledWork returns three received work items of an execution. The second one is cancelled.
func cancelledWork(f *kit.Fixture) []provider.LockedWorkItem {
	f.T.Helper()
	e := f.StartWithoutWake("a")
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue), kit.Activity(kit.Queue), kit.Activity(kit.Queue))
	items, unreadable := f.Provider.DecodeWorkItems(f.Ctx(), f.Fetch(kit.Queue, 3))
	if len(items) != 3 || len(unreadable) > 0 {
		f.T.Fatalf("got %d work items, %d unreadable", len(items), len(unreadable))
	}
	slices.SortFunc(items, func(a, b provider.LockedWorkItem) int { return int(a.ActivityID - b.ActivityID) })
	e.Ack(cancelTurn(e, kit.TurnStarted(), cancels("requested", one(4))))
	return items
}

// wantRenewals fails if one of the three renewals is lost, or if any other than the second is cancelled.
func wantRenewals(f *kit.Fixture, got []provider.Renewal) {
	f.T.Helper()
	if len(got) != 3 {
		f.T.Fatalf("got %d renewals, want 3", len(got))
	}
	for i, r := range got {
		if r.Lost || r.Cancel.Requested != (i == 1) {
			f.T.Errorf("renewal %d: got %+v", i, r)
		}
	}
	if c := got[1].Cancel; c.Reason != "requested" || c.Message != "m" || c.RequestedAt.IsZero() {
		f.T.Errorf("renewal: got %+v", c)
	}
}

func renewSurfaces(f *kit.Fixture) {
	items := cancelledWork(f)
	renewals, err := f.Provider.RenewWorkItemLocks(f.Ctx(), kit.Queue, kit.LongLock, items...)
	f.Must(err)
	wantRenewals(f, renewals)
	for i := range items {
		f.WantEqual("locked until", renewals[i].Until, items[i].Record.LockedUntil())
	}
	none, err := f.Provider.RenewWorkItemLocks(f.Ctx(), kit.Queue, kit.LongLock)
	f.Must(err)
	f.WantEqual("renewals without records", len(none), 0)
}

// renewLeases renews with only the token and the receipt handle of each message. A lost lease does not affect the
// others.
func renewLeases(f *kit.Fixture) {
	items := cancelledWork(f)
	leases := make([]provider.LockedWorkItem, len(items))
	for i := range items {
		w, err := f.Provider.VerifyWorkItemToken(f.Ctx(), items[i].Token)
		f.Must(err)
		leases[i] = provider.LockedWorkItem{
			WorkItem: w, Record: provider.Record{ID: kit.Text(i), ReceiptHandle: items[i].Record.ReceiptHandle},
		}
	}
	began := f.Now()
	renewals, err := f.Provider.RenewWorkItemLocks(f.Ctx(), kit.Queue, kit.LongLock, leases...)
	f.Must(err)
	wantRenewals(f, renewals)
	for i, r := range renewals {
		if r.Until.Before(began.Add(kit.LongLock)) || r.Until.After(f.Now().Add(kit.LongLock)) {
			f.T.Errorf("renewal %d: locked until %v, now is %v", i, r.Until, f.Now())
		}
	}
	f.Advance(kit.PastLock)
	f.WantNone(kit.Queue, "after the first lock")
	if !f.Can(kit.StrictLocks) {
		return
	}
	f.Must(f.Provider.DeleteRecords(f.Ctx(), kit.Queue, items[0].Record))
	leases[2].Record.ReceiptHandle = "unknown"
	renewals, err = f.Provider.RenewWorkItemLocks(f.Ctx(), kit.Queue, kit.LongLock, leases...)
	f.Must(err)
	if r := renewals; !r[0].Lost || r[1].Lost || !r[2].Lost || !r[0].Until.IsZero() || r[1].Until.IsZero() ||
		!r[2].Until.IsZero() || !r[1].Cancel.Requested {
		f.T.Errorf("got renewals %+v", r)
	}
}

func renewExtendsCancelled(f *kit.Fixture) {
	items := cancelledWork(f)
	renewals, err := f.Provider.RenewWorkItemLocks(f.Ctx(), kit.Queue, kit.LongLock, items...)
	f.Must(err)
	wantRenewals(f, renewals)
	f.Advance(kit.PastLock)
	f.WantNone(kit.Queue, "after the first lock")
	for i := range items {
		if !items[i].Record.Held(f.Now()) {
			f.T.Errorf("the lock of work item %d is not extended", i)
		}
	}
	items[1].Record.EndHold()
	renewals, err = f.Provider.RenewWorkItemLocks(f.Ctx(), kit.Queue, kit.LongLock, items...)
	f.Must(err)
	f.WantEqual("lost", []bool{renewals[0].Lost, renewals[1].Lost, renewals[2].Lost}, []bool{false, true, false})
}

func renewUnreadable(f *kit.Fixture) {
	items := cancelledWork(f)
	f.Fail(kit.Fault{Operation: kit.Read, Failure: kit.Rejected, Times: 1})
	renewals, err := f.Provider.RenewWorkItemLocks(f.Ctx(), kit.Queue, kit.LongLock, items...)
	f.WantPermanent(err)
	if len(renewals) != 3 {
		f.T.Fatalf("got renewals %+v", renewals)
	}
	for i, r := range renewals {
		if r.Lost || r.Cancel.Requested || r.Err != nil || r.CancelErr == nil || r.Until.IsZero() {
			f.T.Errorf("renewal %d: got %+v", i, r)
		}
	}
	f.Advance(kit.PastLock)
	f.WantNone(kit.Queue, "after the first lock")
}
