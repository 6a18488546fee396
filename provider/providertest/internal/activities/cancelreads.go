package activities

import (
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

func fetchSurfaces(f *kit.Fixture) {
	e := f.Start("a")
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue), kit.Activity(kit.Queue))
	behind(f)
	t := cancelTurn(e, kit.TurnStarted(), cancels("select_loser", one(3)))
	e.Ack(t)
	items := f.Work(kit.Queue)
	if len(items) != 2 {
		f.T.Fatalf("%d work items, want 2: a cancelled one must be received too", len(items))
	}
	f.WantEqual("cancel flag", flag(f, &items[0]), provider.CancelInfo{
		Requested: true, Reason: "select_loser", Message: "m", RequestedAt: t.Events[1].Time,
	})
	f.WantEqual("cancel flag of the other activity", flag(f, &items[1]), provider.CancelInfo{})
}

// flag returns the cancel of a received work item's activity.
func flag(f *kit.Fixture, it *provider.LockedWorkItem) provider.CancelInfo {
	f.T.Helper()
	info, next, err := it.Cancel.Of(it.ActivityID)
	f.Must(err)
	if next < it.Segment {
		f.T.Errorf("cancel flags read up to segment %d, but the activity was scheduled in segment %d", next, it.Segment)
	}
	return info
}

// fetchAsksOnce checks that the cancel record of each execution is read once, when the first item requests it. The read
// returns the decisions from before and after the receive.
func fetchAsksOnce(f *kit.Fixture) {
	a, b := f.Start("a"), f.Start("b")
	a.Commit(kit.TurnStarted(), kit.Activity(kit.Queue), kit.Activity(kit.Queue))
	b.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	behind(f)
	reads := f.Count(kit.Read)
	items := f.Work(kit.Queue)
	reads.Want(0, "receiving must not read cancel flags")
	a.Ack(cancelTurn(a, kit.TurnStarted(), cancels("select_loser", one(4))))
	b.Ack(cancelTurn(b, kit.TurnStarted(), cancels("timeout", one(3))))
	reads = f.Count(kit.Read)
	got := map[string]string{}
	for i := range items {
		got[items[i].InstanceID+kit.Text(items[i].ActivityID)] = flag(f, &items[i]).Reason
	}
	f.WantEqual("flags", got, map[string]string{"a3": "", "a4": "select_loser", "b3": "timeout"})
	reads.Want(2, "one read per execution")
}

// fetchUnreadable checks that an unreadable cancel record is an error for all items of the execution, and does not set
// Requested.
func fetchUnreadable(f *kit.Fixture) {
	e := f.Start("a")
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue), kit.Activity(kit.Queue))
	items := f.Work(kit.Queue)
	f.Fail(kit.Fault{Operation: kit.Read, Failure: kit.Rejected, Times: 1})
	for i := range items {
		_, _, err := items[i].Cancel.Of(items[i].ActivityID)
		f.WantPermanent(err)
	}
}

// manyCancellingTurns fills several blocks with turns. Some of the turns cancel nothing. A read from a segment returns
// all decisions of that segment and later ones, unchanged. It can also return earlier decisions, unchanged.
func manyCancellingTurns(f *kit.Fixture) {
	const turns = 3*provider.CancelBlockTurns + 20
	e := f.Start("a")
	decidedIn := map[int64]int64{} // maps an activity to a segment
	var again history.Range
	for n := range int64(turns) {
		if n%7 == 3 {
			e.Ack(cancelTurn(e, kit.TurnStarted()))
		}
		ids := []history.Range{{First: 10 * n, Last: 10*n + n%3}, one(10*n + 5)}
		t := recordTurn(e, cancels(reasonOf(n), ids...), cancels("too late", again, one(10*n+5)))
		e.Ack(t)
		for _, r := range ids {
			for id := r.First; id <= r.Last; id++ {
				decidedIn[id] = t.Head.Segment + 1
			}
		}
		again = ids[0]
	}
	last := e.Head.Segment
	for _, from := range []int64{
		0, 1, 2, 73, 74, 75, 76, 77, 148, 149, 150, 151, last - 90, last - 70, last - 20, last - 1, last, last + 1,
	} {
		record, _ := f.CancelsFrom(e.Head.ExecutionID, from)
		for id := range int64(10 * turns) {
			segment, decided := decidedIn[id]
			switch got := record.Of(id).Reason; {
			case decided && segment >= from && got != reasonOf(id/10), !decided && got != "":
				f.T.Fatalf("read from segment %d: activity %d, cancelled in segment %d (%v), has reason %q, want %q",
					from, id, segment, decided, got, reasonOf(id/10))
			}
		}
	}
}

func reasonOf(n int64) string { return "reason " + kit.Text(n) }

// readingOn checks that a reader that continues from next finds the later decisions and the open ones.
func readingOn(f *kit.Fixture) {
	e := f.Start("a")
	x := e.Head.ExecutionID
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue), kit.Activity(kit.Queue))
	known, next := f.CancelsFrom(x, 1)
	if len(known) > 0 {
		f.T.Errorf("nothing is cancelled, but the record contains %s", kit.Text(known))
	}
	for n := range int64(provider.CancelBlockTurns + 40) {
		e.Ack(recordTurn(e, cancels(reasonOf(n), one(100+n))))
		if n%10 != 0 {
			continue
		}
		known, next = f.CancelsFrom(x, next)
		if got := known.Of(100 + n).Reason; got != reasonOf(n) {
			f.T.Errorf("activity %d: %q", 100+n, got)
		}
		f.Advance(shortPass)
	}
	e.Commit(kit.TurnStarted())
	quiet, _ := f.CancelsFrom(x, e.Head.Segment)
	if len(quiet) > 0 {
		f.T.Errorf("nothing is cancelled from the last segment, but the record contains %s", kit.Text(quiet))
	}
	f.Must(f.Provider.DeleteInstance(f.Ctx(), "a", true))
	for _, from := range []int64{1, next, e.Head.Segment, e.Head.Segment + 100} {
		if known, _ = f.CancelsFrom(x, from); !known.Of(3).Deleted {
			f.T.Errorf("read from segment %d: record does not mark the instance as deleted: %s", from,
				kit.Shorten(kit.Text(known)))
		}
	}
}

// pollingOn checks that consecutive polls return all decisions, even if the reads are stale. The last poll is not
// stale.
func pollingOn(f *kit.Fixture) {
	e := f.Start("a")
	seen := map[int64]string{}
	next := int64(0)
	poll := func() {
		f.T.Helper()
		known, from, err := f.Provider.PollCancels(f.Ctx(), e.Head.ExecutionID, next)
		f.Must(err)
		for id := int64(100); id < 200; id++ {
			if reason := known.Of(id).Reason; reason != "" {
				seen[id] = reason
			}
		}
		next = from
	}
	want := map[int64]string{}
	for n := range int64(provider.CancelBlockTurns + 10) {
		f.Lag(int(n % 9)) // several items, also parts of transactions
		id := 100 + n
		want[id] = reasonOf(n)
		e.Ack(recordTurn(e, cancels(want[id], one(id))))
		poll()
		for id, reason := range seen {
			f.WantEqual("cancel info must equal the decision", reason, want[id])
		}
	}
	f.Lag(0)
	poll()
	f.WantEqual("cancel info", seen, want)
}

func strongCancels(f *kit.Fixture) {
	e := f.Start("a")
	e.Ack(recordTurn(e, cancels("requested", one(3))))
	f.Lag(3)
	e.Ack(recordTurn(e, cancels("timeout", one(4))))
	e.WantReasons("", "", "requested", "timeout")
}

func unreadableCancels(f *kit.Fixture) {
	f.Fail(kit.Fault{Operation: kit.Read, Failure: kit.Rejected, Times: 1})
	_, _, err := f.Provider.ReadCancels(f.Ctx(), "x", 0)
	f.WantPermanent(err)
}
