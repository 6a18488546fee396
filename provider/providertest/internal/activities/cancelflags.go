package activities

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// CancelFlags tests that the cancel record contains exactly the cancel decisions in the history (R12; seed 002, row
// by row).
func CancelFlags() kit.Group {
	return kit.Group{Name: "cancelflags", Cases: []kit.Case{
		{Name: "FetchSurfacesCancelFlag", Run: fetchSurfaces},
		{Name: "FetchAsksOnceForAnExecution", Run: fetchAsksOnce, Needs: []kit.Capability{kit.Faults}},
		{Name: "FetchThatCannotAskSaysSo", Run: fetchUnreadable, Needs: []kit.Capability{kit.Faults}},
		{Name: "AckEnqueueAndCancelInOneTransaction", Run: enqueueAndCancel},
		{Name: "FailedAckLeavesNoCancelFlag", Run: failedAckLeavesNoFlag},
		{Name: "ARefusedCommitLeavesNoCancelFlag", Run: refusedLeavesNoFlag, Needs: []kit.Capability{kit.Faults}},
		{Name: "ALostResponseIsSuccess", Run: lostCancel, Needs: []kit.Capability{kit.Faults}},
		{Name: "MassCancel", Run: massCancel},
		{Name: "MassCancelFragmented", Run: massCancelFragmented},
		{Name: "AnyIDsInAnyOrder", Run: anyCancels},
		{Name: "CancelIsIdempotentFirstReasonWins", Run: firstReasonWins},
		{Name: "ALaterTurnAddsToTheRecord", Run: laterTurnAdds},
		{Name: "TheRecordOfManyTurnsReadsTheSameFromAnySegment", Run: manyCancellingTurns},
		{Name: "WhoReadsOnMissesNothing", Run: readingOn},
		{Name: "APollThatIsBehindPassesOverNothing", Run: pollingOn, Needs: []kit.Capability{kit.StaleReads}},
		{Name: "AReadOfTheRecordIsNeverBehind", Run: strongCancels, Needs: []kit.Capability{kit.StaleReads}},
		{Name: "ATurnThatCancelsMoreThanAnItemHolds", Run: severalItems},
		{Name: "ATurnThatCancelsMoreThanACommitHolds", Run: tooManyCancels},
		{Name: "CancelUnknownIsHarmless", Run: cancelUnknown},
		{Name: "RenewSurfacesCancelFlag", Run: renewSurfaces, Needs: []kit.Capability{kit.Polling}},
		{
			Name: "RenewByTokenAndLockAlone", Run: renewLeases, Needs: []kit.Capability{kit.Polling},
			Visibility: kit.ShortLock,
		},
		{
			Name: "RenewExtendsLockWhenCancelled", Run: renewExtendsCancelled, Needs: []kit.Capability{kit.Polling},
			Visibility: kit.ShortLock,
		},
		{
			Name: "ARenewalThatCannotReadStillExtends", Run: renewUnreadable,
			Needs: []kit.Capability{kit.Polling, kit.Faults}, Visibility: kit.ShortLock,
		},
		{Name: "AckWithoutCompletion", Run: ackWithoutCompletion, Visibility: kit.ShortLock},
		{Name: "CompletionAfterCancelIsFiltered", Run: completionAfterCancel},
		{
			Name: "CancelDoesNotTouchAttempts", Run: attemptsOfCancelled, Needs: []kit.Capability{kit.Polling},
			Visibility: kit.ShortLock,
		},
		{Name: "CancelIsPerExecution", Run: cancelPerExecution},
		{Name: "AnEndWithWorkOutstandingCancelsAll", Run: endCancelsAll},
		{Name: "ALargeTurnThatCancelsCommitsWhole", Run: largeCancel},
		{Name: "OrphanActivityAfterDelete", Run: orphanAfterDelete},
		{Name: "ALateTurnCancelsNothingOfWhatIsDeleted", Run: lateCancelAfterDelete},
		{
			Name: "TheEndOfADamagedHistoryCancelsTheRest", Run: damagedEndCancels,
			Needs: []kit.Capability{kit.Corruption},
		},
		{Name: "AnUnreachableRecordIsAnError", Run: unreadableCancels, Needs: []kit.Capability{kit.Faults}},
	}}
}

// cancels returns the event of code that cancels activities.
func cancels(reason string, ids ...history.Range) history.Event {
	e := history.Event{
		Kind: history.ActivityCancelRequested, Reason: reason, Message: "m",
		RequestedBy: history.RequestedByOrchestration,
	}
	if len(ids) == 1 && ids[0].First == ids[0].Last {
		e.SourceEventID = ids[0].First
	} else {
		e.SourceEventIDs = ids
	}
	return e
}

func one(id int64) history.Range { return history.Range{First: id, Last: id} }

// recordTurn returns a turn with these events. They may cancel activities that the history does not have, which a
// provider does not check.
func recordTurn(e *kit.Execution, decided ...history.Event) *provider.Turn {
	return deciding(e, e.Turn(kit.TurnStarted()), provider.CancelsOf(decided))
}

// cancelTurn returns a turn with the cancel decisions of its events.
func cancelTurn(e *kit.Execution, events ...history.Event) *provider.Turn {
	t := e.Turn(events...)
	return deciding(e, t, provider.CancelsOf(t.Events))
}

func deciding(e *kit.Execution, t *provider.Turn, cancels provider.Cancels) *provider.Turn {
	t.Cancels = cancels
	if last := e.Block.Last; len(cancels) > 0 {
		t.CancelsAfter = &last
	}
	_, t.CancelBlock = e.Block.Add(t.Head.Segment+1, cancels)
	return t
}

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

// fetchAsksOnce: if two executions have one item and two items, each execution is read once, and not before an item
// requests it. The read returns the decisions from before and after the receive.
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

// fetchUnreadable: an unreadable cancel record is an error for all items of the execution, and does not set Requested.
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

func enqueueAndCancel(f *kit.Fixture) {
	e := f.Start("a")
	behind(f)
	writes := f.Count(kit.Write)
	e.Ack(cancelTurn(e, kit.TurnStarted(), kit.Activity(kit.Queue), cancels("requested", one(3))))
	writes.Want(1, "a turn and its cancel flags are one write")
	e.WantReasons("", "", "requested")
	items := f.Work(kit.Queue)
	if len(items) != 1 || !flag(f, &items[0]).Requested {
		f.T.Errorf("received %s, want the cancelled activity", kit.Text(items))
	}
}

func failedAckLeavesNoFlag(f *kit.Fixture) {
	e := f.Start("a")
	loser := cancelTurn(e, kit.TurnStarted(), kit.Activity(kit.OtherQueue), cancels("requested", one(3)))
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	_, err := f.Provider.AckOrchestrationItem(f.Ctx(), loser)
	f.WantErrorIs(err, provider.ErrConflict)
	e.WantReasons("", "", "")
	if n := len(f.Drain(kit.OtherQueue)); n > 0 {
		f.T.Errorf("%d work items of the turn that was not committed, want none", n)
	}
}

func refusedLeavesNoFlag(f *kit.Fixture) {
	e := f.Start("a")
	f.Fail(kit.Fault{Operation: kit.Write, Failure: kit.Rejected, Times: 1})
	_, err := f.Provider.AckOrchestrationItem(f.Ctx(),
		cancelTurn(e, kit.TurnStarted(), kit.Activity(kit.Queue), cancels("requested", one(3))))
	f.WantPermanent(err)
	e.WantReasons("", "", "")
	e.WantSegments()
}

func lostCancel(f *kit.Fixture) {
	e := f.Start("a")
	hits := f.Fail(kit.Fault{Operation: kit.Write, Failure: kit.ResponseLost, Times: 1})
	e.Ack(cancelTurn(e, kit.TurnStarted(), kit.Activity(kit.Queue), cancels("requested", one(3))))
	if e.WantReasons("", "", "requested"); hits() != 1 {
		f.T.Errorf("%d responses lost, want 1", hits())
	}
}

func massCancel(f *kit.Fixture) {
	e := f.Start("a")
	const losers = 2000
	behind(f)
	e.Ack(recordTurn(e, cancels("select_loser", history.Range{First: 3, Last: 2 + losers})))
	c := f.Cancels(e.Head.ExecutionID)
	if len(c) != 1 || c.Of(2).Requested || !c.Of(3).Requested || !c.Of(2+losers).Requested || c.Of(3+losers).Requested {
		f.T.Errorf("cancel record: %s", kit.Shorten(kit.Text(c)))
	}
	for _, op := range []kit.Operation{kit.Write, kit.Update, kit.Read, kit.Send, kit.Delete} {
		few, many := callsToCancel(f, op, 1), callsToCancel(f, op, losers)
		f.WantEqual(fmt.Sprintf("calls of kind %s for %d cancels must not exceed those for one", op, losers), many, few)
	}
}

// callsToCancel returns the number of calls of a kind to cancel n activities in one turn and to read the decision.
func callsToCancel(f *kit.Fixture, op kit.Operation, n int64) int {
	f.T.Helper()
	e := f.Start(fmt.Sprintf("%s-%d", op, n))
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	calls := f.Count(op)
	e.Ack(recordTurn(e, cancels("select_loser", history.Range{First: 3, Last: 2 + n})))
	f.Cancels(e.Head.ExecutionID)
	return calls.Hits()
}

// behind makes eventually consistent reads miss all later writes, if the backend supports that (StaleReads).
func behind(f *kit.Fixture) {
	const more = 1000 // more than any of these tests writes
	if f.Can(kit.StaleReads) {
		f.Lag(more)
	}
}

// It cancels every second of 200,000 activities, so that ranges do not shorten the record.
func massCancelFragmented(f *kit.Fixture) {
	e := f.Start("a")
	const n = 200_000
	var ids []history.Range
	for id := int64(4); id < n; id += 2 {
		ids = append(ids, one(id))
	}
	e.Ack(recordTurn(e, cancels("orchestration_terminal_failed", ids...)))
	c := f.Cancels(e.Head.ExecutionID)
	const step = 997 // odd, so that it checks even and odd IDs; each check searches the ranges
	for id := int64(1); id <= n; id += step {
		if want := id >= 4 && id < n && id%2 == 0; c.Of(id).Requested != want {
			f.T.Fatalf("activity %d: %v, want %v", id, c.Of(id).Requested, want)
		}
	}
}

// Unsorted ranges of different sizes are read as they were written.
func anyCancels(f *kit.Fixture) {
	e := f.Start("a")
	ids := []history.Range{
		{First: 900, Last: 950},
		one(7),
		{First: 100, Last: 163},
		one(9), one(11), one(13),
		{First: 8000, Last: 8001},
		one(15),
	}
	e.Ack(recordTurn(e, cancels("requested", ids...), cancels("timeout", one(8), one(10))))
	c := f.Cancels(e.Head.ExecutionID)
	want := map[int64]string{8: "timeout", 10: "timeout"}
	for _, r := range ids {
		for id := r.First; id <= r.Last; id++ {
			want[id] = "requested"
		}
	}
	for id := int64(1); id < 8100; id++ {
		if got := c.Of(id).Reason; got != want[id] {
			f.T.Errorf("activity %d: %q, want %q", id, got, want[id])
		}
	}
}

func firstReasonWins(f *kit.Fixture) {
	e := f.Start("a")
	first := cancelTurn(e, kit.TurnStarted(), kit.Activity(kit.Queue), kit.Activity(kit.Queue),
		cancels("select_loser", one(3)))
	e.Ack(first)
	second := cancelTurn(e, kit.TurnStarted(), cancels("requested", one(3), one(4)))
	e.Ack(second)
	e.WantReasons("", "", "select_loser", "requested")
	f.Redispatch(e, kit.At(1))
	e.WantReasons("", "", "select_loser", "requested")
}

// laterTurnAdds: a turn writes only its own decisions. Earlier decisions stay, and come first.
func laterTurnAdds(f *kit.Fixture) {
	e := f.Start("a")
	e.Ack(cancelTurn(e, kit.TurnStarted(), kit.Activity(kit.Queue), kit.Activity(kit.Queue), kit.Activity(kit.Queue),
		cancels("select_loser", one(3)), cancels("timeout", one(4))))
	e.Commit(kit.TurnStarted())
	e.Ack(cancelTurn(e, kit.TurnStarted(), cancels("requested", one(5))))
	e.Ack(cancelTurn(e, kit.TurnStarted(), cancels("timeout", one(3), one(4), one(5))))
	e.WantReasons("", "", "select_loser", "timeout", "requested", "")
	var order []string
	for _, c := range f.Cancels(e.Head.ExecutionID) {
		order = append(order, c.Reason)
	}
	f.WantEqual("decisions", order, []string{"select_loser", "timeout", "requested", "timeout"})
}

// manyCancellingTurns: the turns fill several blocks, and some turns cancel nothing. A read from a segment returns all
// decisions from that segment on, unchanged. It returns an earlier decision unchanged or not at all.
func manyCancellingTurns(f *kit.Fixture) {
	const turns = 3*provider.CancelBlockTurns + 20
	e := f.Start("a")
	decidedIn := map[int64]int64{} // by activity
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

// readingOn: a reader that continues from next finds the later decisions and the open ones.
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

// shortPass is a short wait, also in real time.
const shortPass = 10 * time.Millisecond

// pollingOn: consecutive polls return all decisions, even if the reads are stale. The last poll is not stale.
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

// severalItems: the reasons do not compress, and take twice the size of an item of most stores.
func severalItems(f *kit.Fixture) {
	e := f.Start("a")
	t := e.Turn(kit.TurnStarted())
	for id := range int64(600) {
		t.Cancels = append(t.Cancels, provider.ActivityCancel{
			IDs: []history.Range{one(id + 3)}, Reason: gibberish(uint64(id), 1<<10), At: f.StoredNow(),
		})
	}
	e.Ack(t)
	e.Ack(recordTurn(e, cancels("requested", one(3), one(9999))))
	for _, from := range []int64{0, 1} {
		record, _ := f.CancelsFrom(e.Head.ExecutionID, from)
		for i := range t.Cancels {
			if got := record.Of(int64(i + 3)).Reason; got != t.Cancels[i].Reason {
				f.T.Fatalf("read from segment %d: activity %d has reason %q, want %q", from, i+3, kit.Shorten(got),
					kit.Shorten(t.Cancels[i].Reason))
			}
		}
		f.WantEqual("reason of another turn", record.Of(9999).Reason, "requested")
	}
}

// gibberish returns text that does not compress. Each seed results in another text.
func gibberish(seed uint64, n int) string {
	rng := rand.New(rand.NewPCG(seed, 7))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('!' + rng.IntN('~'-'!'))
	}
	return string(b)
}

func tooManyCancels(f *kit.Fixture) {
	e := f.Start("a")
	t := e.Turn(kit.TurnStarted())
	for id := range int64(6 << 10) {
		t.Cancels = append(t.Cancels, provider.ActivityCancel{
			IDs: []history.Range{one(id + 3)}, Reason: gibberish(uint64(id), 1<<10), At: f.StoredNow(),
		})
	}
	_, err := f.Provider.AckOrchestrationItem(f.Ctx(), t)
	f.WantErrorIs(err, provider.ErrTooLarge)
	e.WantReasons("", "", "")
	e.WantSegments()
}

func cancelUnknown(f *kit.Fixture) {
	e := f.Start("a")
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	e.Commit(kit.Completed(3))
	e.Ack(recordTurn(e, cancels("requested", one(3), one(4711))))
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	f.WantStatus("a", provider.StatusRunning)
	if c := f.Cancels("nobody's"); len(c) > 0 {
		f.T.Errorf("unknown execution has the record %s", kit.Text(c))
	}
}

// cancelledWork returns the three work items of an execution as a worker holds them. The second one is cancelled.
func cancelledWork(f *kit.Fixture) []provider.LockedWorkItem {
	f.T.Helper()
	e := f.StartWithoutWake("a")
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue), kit.Activity(kit.Queue), kit.Activity(kit.Queue))
	items, unreadable := f.Provider.DecodeWorkItems(f.Ctx(), f.Fetch(kit.Queue, 3))
	if len(items) != 3 || len(unreadable) > 0 {
		f.T.Fatalf("%d work items, %d unreadable", len(items), len(unreadable))
	}
	slices.SortFunc(items, func(a, b provider.LockedWorkItem) int { return int(a.ActivityID - b.ActivityID) })
	e.Ack(cancelTurn(e, kit.TurnStarted(), cancels("requested", one(4))))
	return items
}

// wantRenewals fails unless none of the three renewals is lost and only the second is cancelled.
func wantRenewals(f *kit.Fixture, got []provider.Renewal) {
	f.T.Helper()
	if len(got) != 3 {
		f.T.Fatalf("%d renewals, want 3", len(got))
	}
	for i, r := range got {
		if r.Lost || r.Cancel.Requested != (i == 1) {
			f.T.Errorf("renewal %d: %+v", i, r)
		}
	}
	if c := got[1].Cancel; c.Reason != "requested" || c.Message != "m" || c.RequestedAt.IsZero() {
		f.T.Errorf("renewal: %+v", c)
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

// renewLeases: a caller has only the token and the receipt handle of a message. A lost lease does not affect the
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
	leases[2].Record.ReceiptHandle = "nobody's"
	renewals, err = f.Provider.RenewWorkItemLocks(f.Ctx(), kit.Queue, kit.LongLock, leases...)
	f.Must(err)
	if r := renewals; !r[0].Lost || r[1].Lost || !r[2].Lost || !r[0].Until.IsZero() || r[1].Until.IsZero() ||
		!r[2].Until.IsZero() || !r[1].Cancel.Requested {
		f.T.Errorf("renewals %+v", r)
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
		f.T.Fatalf("renewals %+v", renewals)
	}
	for i, r := range renewals {
		if r.Lost || r.Cancel.Requested || r.Err != nil || r.CancelErr == nil || r.Until.IsZero() {
			f.T.Errorf("renewal %d: %+v", i, r)
		}
	}
	f.Advance(kit.PastLock)
	f.WantNone(kit.Queue, "after the first lock")
}

// ackWithoutCompletion: a cancelled activity that did not run is acknowledged. Nothing is sent, and its record is
// deleted.
func ackWithoutCompletion(f *kit.Fixture) {
	e := f.StartWithoutWake("a")
	e.Ack(cancelTurn(e, kit.TurnStarted(), kit.Activity(kit.Queue), cancels("requested", one(3))))
	failed, err := f.Provider.AckWorkItems(f.Ctx(), kit.Queue, []provider.CompletedWorkItem{
		{LockedWorkItem: &f.Locked(kit.Queue)[0]},
	})
	f.Must(err)
	if len(failed) > 0 {
		f.T.Errorf("%d failed", len(failed))
	}
	if ms := f.Messages(); len(ms) > 0 {
		f.T.Errorf("messages to the orchestration: %s", kit.Text(ms))
	}
	f.Advance(kit.PastLock)
	f.WantNothingSent()
}

// attemptsOfCancelled: deliveries and deaths of a cancelled activity count like those of any other.
func attemptsOfCancelled(f *kit.Fixture) {
	items := cancelledWork(f)
	for delivery := 1; delivery <= 3; delivery++ {
		if delivery > 1 {
			f.Advance(kit.PastLock)
			items, _ = f.Provider.DecodeWorkItems(f.Ctx(), f.Fetch(kit.Queue, 3))
		}
		if len(items) != 3 {
			f.T.Fatalf("delivery %d has %d work items, want 3", delivery, len(items))
		}
		for _, it := range items {
			f.WantEqual("delivery and attempt", []int{it.Record.ReceiveCount, it.Attempt}, []int{delivery, 1})
			f.WantDied(provider.Attempt{
				ExecutionID: it.ExecutionID, ActivityID: it.ActivityID, Record: it.Record,
			}, delivery-1)
		}
	}
}

// completionAfterCancel: the outcome is accepted and sent. The turn decides that the code does not receive it.
func completionAfterCancel(f *kit.Fixture) {
	e := f.Start("a")
	e.Ack(cancelTurn(e, kit.TurnStarted(), kit.Activity(kit.Queue), cancels("requested", one(3))))
	f.Messages()
	done := provider.CompletedWorkItem{
		LockedWorkItem: &f.Locked(kit.Queue)[0],
		Outcome:        &provider.ActivityOutcome{ActivityID: 3, Attempt: 1, Result: history.Payload("1")},
	}
	failed, err := f.Provider.AckWorkItems(f.Ctx(), kit.Queue, []provider.CompletedWorkItem{done})
	f.Must(err)
	ms := f.Messages()
	if len(failed) != 0 || len(ms) != 1 {
		f.T.Fatalf("%d failed, %d messages; want the outcome to be sent", len(failed), len(ms))
	}
	f.WantEqual("the outcome", ms[0].Outcomes, []provider.ActivityOutcome{*done.Outcome})
}

func cancelPerExecution(f *kit.Fixture) {
	e := f.Start("a")
	t := e.Continuing("x2", kit.TurnStarted(), kit.Activity(kit.Queue),
		cancels("orchestration_terminal_continued_as_new", one(3)))
	t.Cancels = provider.CancelsOf(t.Events)
	_, err := f.Provider.AckOrchestrationItem(f.Ctx(), t)
	f.Must(err)
	if !f.Cancels(e.Instance.ExecutionID).Of(3).Requested {
		f.T.Error("ended execution has no cancel record")
	}
	if f.Cancels("x2").Of(3).Requested {
		f.T.Error("next execution has the cancel record of the previous one")
	}
}

func endCancelsAll(f *kit.Fixture) {
	e := f.Start("a")
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	by := cancels("orchestration_terminal_completed", one(3))
	by.RequestedBy = history.RequestedByEngine
	e.Ack(cancelTurn(e, kit.TurnStarted(), by, kit.Ended("1")))
	e.WantReasons(slices.Repeat([]string{"orchestration_terminal_completed"}, 5)...)
	f.WantStatus("a", provider.StatusCompleted)
}

func largeCancel(f *kit.Fixture) {
	e := f.Start("a")
	t := cancelTurn(e, kit.TurnStarted(), kit.Bulky(900<<10), cancels("requested", one(3)))
	e.Ack(t)
	e.WantSegments(t)
	e.WantReasons("", "", "requested")
}

// orphanAfterDelete: an activity of a deleted instance is cancelled, whether it is running or queued. The same holds
// for an activity of an execution that has continued as new, and for one without a record.
func orphanAfterDelete(f *kit.Fixture) {
	e := f.Start("a")
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	next := e.ContinueAs("x2", kit.Completed(3))
	t := cancelTurn(next, kit.TurnStarted(), kit.Activity(kit.Queue), kit.Activity(kit.Queue),
		cancels("select_loser", one(4)))
	next.Ack(t)
	queued := f.Locked(kit.Queue)
	if f.Can(kit.Faults) { // the write that ends the instance also cancels them, not a later write
		f.Fail(kit.Fault{Operation: kit.Write, Failure: kit.Rejected, After: 1})
		f.WantPermanent(f.Provider.DeleteInstance(f.Ctx(), "a", true))
		f.Fail(kit.Fault{})
		next.WantReasons("instance_deleted", "instance_deleted", "instance_deleted", "select_loser", "instance_deleted")
	}
	f.Must(f.Provider.DeleteInstance(f.Ctx(), "a", true))
	next.WantReasons("instance_deleted", "instance_deleted", "instance_deleted", "select_loser", "instance_deleted")
	e.WantReasons("instance_deleted", "instance_deleted", "instance_deleted")
	if len(queued) != 3 {
		f.T.Errorf("%d work items, want 3", len(queued))
	}
	for _, w := range queued {
		if info := f.Cancels(w.ExecutionID).Of(w.ActivityID); !info.Requested || info.RequestedAt.IsZero() {
			f.T.Errorf("activity %d of execution %s: %+v", w.ActivityID, w.ExecutionID, info)
		}
	}
}

// lateCancelAfterDelete: the turn was running when the instance was deleted.
func lateCancelAfterDelete(f *kit.Fixture) {
	e := f.Start("a")
	e.Ack(cancelTurn(e, kit.TurnStarted(), kit.Activity(kit.Queue), kit.Activity(kit.Queue),
		cancels("select_loser", one(3))))
	late := cancelTurn(e, kit.TurnStarted(), cancels("requested", one(4)))
	f.Must(f.Provider.DeleteInstance(f.Ctx(), "a", true))
	_, err := f.Provider.AckOrchestrationItem(f.Ctx(), late)
	f.WantErrorIs(err, provider.ErrConflict)
	e.WantReasons("instance_deleted", "instance_deleted", "select_loser", "instance_deleted")
	if record := f.Cancels(e.Head.ExecutionID); !record.Of(3).Deleted || !record.Of(4).Deleted {
		f.T.Errorf("record does not mark the instance as deleted: %s", kit.Text(record))
	}
}

// damagedEndCancels: the decisions of turns stay although the history cannot be read.
func damagedEndCancels(f *kit.Fixture) {
	e := f.StartWithoutWake("a")
	e.Ack(cancelTurn(e, kit.TurnStarted(), kit.Activity(kit.Queue), kit.Activity(kit.Queue),
		cancels("select_loser", one(3))))
	e.Commit(kit.TurnStarted())
	f.Damage(e.Instance.ExecutionID, 1, kit.Undecodable)
	f.Enqueue(provider.Message{Kind: provider.MessageTerminate, InstanceID: "a"})
	f.Must(f.Provider.TerminateCorrupt(f.Ctx(), &f.Messages()[0]))
	e.WantReasons("orchestration_terminal_terminated", "orchestration_terminal_terminated", "select_loser",
		"orchestration_terminal_terminated")
}

func unreadableCancels(f *kit.Fixture) {
	f.Fail(kit.Fault{Operation: kit.Read, Failure: kit.Rejected, Times: 1})
	_, _, err := f.Provider.ReadCancels(f.Ctx(), "x", 0)
	f.WantPermanent(err)
}
