package providertest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// The cancel record contains exactly the cancel decisions in the history (R12; seed 002, row by row).
func cancelFlags() group {
	return group{"cancelflags", []testCase{
		{name: "FetchSurfacesCancelFlag", run: fetchSurfaces},
		{name: "FetchAsksOnceForAnExecution", run: fetchAsksOnce, needs: []Capability{Faults}},
		{name: "FetchThatCannotAskSaysSo", run: fetchUnreadable, needs: []Capability{Faults}},
		{name: "AckEnqueueAndCancelInOneTransaction", run: enqueueAndCancel},
		{name: "FailedAckLeavesNoCancelFlag", run: failedAckLeavesNoFlag},
		{name: "ARefusedCommitLeavesNoCancelFlag", run: refusedLeavesNoFlag, needs: []Capability{Faults}},
		{name: "ALostResponseIsSuccess", run: lostCancel, needs: []Capability{Faults}},
		{name: "MassCancel", run: massCancel},
		{name: "MassCancelFragmented", run: massCancelFragmented},
		{name: "AnyIDsInAnyOrder", run: anyCancels},
		{name: "CancelIsIdempotentFirstReasonWins", run: firstReasonWins},
		{name: "ALaterTurnAddsToTheRecord", run: laterTurnAdds},
		{name: "TheRecordOfManyTurnsReadsTheSameFromAnySegment", run: manyCancellingTurns},
		{name: "WhoReadsOnMissesNothing", run: readingOn},
		{name: "APollThatIsBehindPassesOverNothing", run: pollingOn, needs: []Capability{StaleReads}},
		{name: "AReadOfTheRecordIsNeverBehind", run: strongCancels, needs: []Capability{StaleReads}},
		{name: "ATurnThatCancelsMoreThanAnItemHolds", run: severalItems},
		{name: "ATurnThatCancelsMoreThanACommitHolds", run: tooManyCancels},
		{name: "CancelUnknownIsHarmless", run: cancelUnknown},
		{name: "RenewSurfacesCancelFlag", run: renewSurfaces, needs: []Capability{Polling}},
		{name: "RenewByTokenAndLockAlone", run: renewLeases, needs: []Capability{Polling}, visibility: shortLock},
		{name: "RenewExtendsLockWhenCancelled", run: renewExtendsCancelled, needs: []Capability{Polling}, visibility: shortLock},
		{name: "ARenewalThatCannotReadStillExtends", run: renewUnreadable, needs: []Capability{Polling, Faults}, visibility: shortLock},
		{name: "AckWithoutCompletion", run: ackWithoutCompletion, visibility: shortLock},
		{name: "CompletionAfterCancelIsFiltered", run: completionAfterCancel},
		{name: "CancelDoesNotTouchAttempts", run: attemptsOfCancelled, needs: []Capability{Polling}, visibility: shortLock},
		{name: "CancelIsPerExecution", run: cancelPerExecution},
		{name: "AnEndWithWorkOutstandingCancelsAll", run: endCancelsAll},
		{name: "ALargeTurnThatCancelsCommitsWhole", run: largeCancel},
		{name: "OrphanActivityAfterDelete", run: orphanAfterDelete},
		{name: "ALateTurnCancelsNothingOfWhatIsDeleted", run: lateCancelAfterDelete},
		{name: "TheEndOfADamagedHistoryCancelsTheRest", run: damagedEndCancels, needs: []Capability{Corruption}},
		{name: "AnUnreachableRecordIsAnError", run: unreadableCancels, needs: []Capability{Faults}},
	}}
}

// cancels returns the event of code that cancels activities.
func cancels(reason string, ids ...history.Range) history.Event {
	e := history.Event{Kind: history.ActivityCancelRequested, Reason: reason, Message: "m", RequestedBy: history.RequestedByOrchestration}
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
func (e *execution) recordTurn(decided ...history.Event) *provider.Turn {
	return e.deciding(e.turn(turnStarted()), provider.CancelsOf(decided))
}

// cancelTurn returns a turn with the cancel decisions of its events.
func (e *execution) cancelTurn(events ...history.Event) *provider.Turn {
	t := e.turn(events...)
	return e.deciding(t, provider.CancelsOf(t.Events))
}

func (e *execution) deciding(t *provider.Turn, cancels provider.Cancels) *provider.Turn {
	t.Cancels = cancels
	if last := e.block.Last; len(cancels) > 0 {
		t.CancelsAfter = &last
	}
	_, t.CancelBlock = e.block.Add(t.Head.Segment+1, cancels)
	return t
}

func (e *execution) ack(t *provider.Turn) {
	e.f.t.Helper()
	_, err := e.f.p.AckOrchestrationItem(e.f.ctx(), t)
	e.f.must(err)
	e.block, _ = e.block.Add(t.Head.Segment+1, t.Cancels)
	e.follow(t)
}

// cancels returns the whole cancel record of an execution.
func (f *fixture) cancels(executionID string) provider.Cancels {
	f.t.Helper()
	c, _ := f.cancelsFrom(executionID, 0)
	return c
}

func (f *fixture) cancelsFrom(executionID string, from int64) (c provider.Cancels, next int64) {
	f.t.Helper()
	c, next, err := f.p.ReadCancels(f.ctx(), executionID, from)
	f.must(err)
	return c, next
}

// wantReasons fails unless activities 1 to len(want) are cancelled for these reasons. An empty reason means not
// cancelled.
func (e *execution) wantReasons(want ...string) {
	e.f.t.Helper()
	c := e.f.cancels(e.head.ExecutionID)
	var got []string
	for i := range want {
		info := c.Of(int64(i + 1))
		if info.Requested != (info.Reason != "") {
			e.f.t.Errorf("activity %d: %+v", i+1, info)
		}
		got = append(got, info.Reason)
	}
	e.f.wantEqual("reasons of activities 1, 2, …", got, want)
}

func fetchSurfaces(f *fixture) {
	e := f.start("a")
	e.commit(turnStarted(), activity(Queue), activity(Queue))
	f.behind()
	t := e.cancelTurn(turnStarted(), cancels("select_loser", one(3)))
	e.ack(t)
	items := f.work(Queue)
	if len(items) != 2 {
		f.t.Fatalf("%d work items, want 2: a cancelled one must be received too", len(items))
	}
	f.wantEqual("cancel flag", f.flag(&items[0]), provider.CancelInfo{Requested: true, Reason: "select_loser", Message: "m", RequestedAt: t.Events[1].Time})
	f.wantEqual("cancel flag of the other activity", f.flag(&items[1]), provider.CancelInfo{})
}

// flag returns the cancel of a received work item's activity.
func (f *fixture) flag(it *provider.LockedWorkItem) provider.CancelInfo {
	f.t.Helper()
	info, next, err := it.Cancel.Of(it.ActivityID)
	f.must(err)
	if next < it.Segment {
		f.t.Errorf("cancel flags read up to segment %d, but the activity was scheduled in segment %d", next, it.Segment)
	}
	return info
}

// fetchAsksOnce: if two executions have one item and two items, each execution is read once, and not before an item
// requests it. The read returns the decisions from before and after the receive.
func fetchAsksOnce(f *fixture) {
	a, b := f.start("a"), f.start("b")
	a.commit(turnStarted(), activity(Queue), activity(Queue))
	b.commit(turnStarted(), activity(Queue))
	f.behind()
	reads := f.count(Read)
	items := f.work(Queue)
	reads.want(0, "receiving must not read cancel flags")
	a.ack(a.cancelTurn(turnStarted(), cancels("select_loser", one(4))))
	b.ack(b.cancelTurn(turnStarted(), cancels("timeout", one(3))))
	reads = f.count(Read)
	got := map[string]string{}
	for i := range items {
		got[items[i].InstanceID+text(items[i].ActivityID)] = f.flag(&items[i]).Reason
	}
	f.wantEqual("flags", got, map[string]string{"a3": "", "a4": "select_loser", "b3": "timeout"})
	reads.want(2, "one read per execution")
}

// fetchUnreadable: an unreadable cancel record is an error for all items of the execution, and does not set Requested.
func fetchUnreadable(f *fixture) {
	e := f.start("a")
	e.commit(turnStarted(), activity(Queue), activity(Queue))
	items := f.work(Queue)
	f.Fail(Fault{Operation: Read, Failure: Rejected, Times: 1})
	for i := range items {
		_, _, err := items[i].Cancel.Of(items[i].ActivityID)
		f.wantPermanent(err)
	}
}

func enqueueAndCancel(f *fixture) {
	e := f.start("a")
	f.behind()
	writes := f.count(Write)
	e.ack(e.cancelTurn(turnStarted(), activity(Queue), cancels("requested", one(3))))
	writes.want(1, "a turn and its cancel flags are one write")
	e.wantReasons("", "", "requested")
	items := f.work(Queue)
	if len(items) != 1 || !f.flag(&items[0]).Requested {
		f.t.Errorf("received %s, want the cancelled activity", text(items))
	}
}

func failedAckLeavesNoFlag(f *fixture) {
	e := f.start("a")
	loser := e.cancelTurn(turnStarted(), activity(OtherQueue), cancels("requested", one(3)))
	e.commit(turnStarted(), activity(Queue))
	_, err := f.p.AckOrchestrationItem(f.ctx(), loser)
	f.wantIs(err, provider.ErrConflict)
	e.wantReasons("", "", "")
	if n := len(f.drain(OtherQueue)); n > 0 {
		f.t.Errorf("%d work items of the turn that was not committed, want none", n)
	}
}

func refusedLeavesNoFlag(f *fixture) {
	e := f.start("a")
	f.Fail(Fault{Operation: Write, Failure: Rejected, Times: 1})
	_, err := f.p.AckOrchestrationItem(f.ctx(), e.cancelTurn(turnStarted(), activity(Queue), cancels("requested", one(3))))
	f.wantPermanent(err)
	e.wantReasons("", "", "")
	e.wantSegments()
}

func lostCancel(f *fixture) {
	e := f.start("a")
	hits := f.Fail(Fault{Operation: Write, Failure: ResponseLost, Times: 1})
	e.ack(e.cancelTurn(turnStarted(), activity(Queue), cancels("requested", one(3))))
	if e.wantReasons("", "", "requested"); hits() != 1 {
		f.t.Errorf("%d responses lost, want 1", hits())
	}
}

func massCancel(f *fixture) {
	e := f.start("a")
	const losers = 2000
	f.behind()
	e.ack(e.recordTurn(cancels("select_loser", history.Range{First: 3, Last: 2 + losers})))
	c := f.cancels(e.head.ExecutionID)
	if len(c) != 1 || c.Of(2).Requested || !c.Of(3).Requested || !c.Of(2+losers).Requested || c.Of(3+losers).Requested {
		f.t.Errorf("cancel record: %s", shorten(text(c)))
	}
	for _, op := range []Operation{Write, Update, Read, Send, Delete} {
		few, many := f.callsToCancel(op, 1), f.callsToCancel(op, losers)
		f.wantEqual(fmt.Sprintf("calls of kind %s for %d cancels must not exceed those for one", op, losers), many, few)
	}
}

// callsToCancel returns the number of calls of a kind to cancel n activities in one turn and to read the decision.
func (f *fixture) callsToCancel(op Operation, n int64) int {
	f.t.Helper()
	e := f.start(fmt.Sprintf("%s-%d", op, n))
	e.commit(turnStarted(), activity(Queue))
	calls := f.count(op)
	e.ack(e.recordTurn(cancels("select_loser", history.Range{First: 3, Last: 2 + n})))
	f.cancels(e.head.ExecutionID)
	return calls.hits()
}

// counted is a number of calls. If the backend cannot count calls (Faults), comparisons are skipped.
type counted struct {
	f    *fixture
	hits func() int
}

// count counts the calls of a kind until another Fault is set.
func (f *fixture) count(op Operation) counted {
	if !f.can(Faults) {
		return counted{f, func() int { return 0 }}
	}
	return counted{f, f.Fail(Fault{Operation: op, Failure: CountOnly})}
}

func (c counted) want(n int, what string) {
	c.f.t.Helper()
	if got := c.hits(); got != n && c.f.can(Faults) {
		c.f.t.Errorf("%d calls, want %d: %s", got, n, what)
	}
}

// behind makes eventually consistent reads miss all later writes, if the backend supports that (StaleReads).
func (f *fixture) behind() {
	const more = 1000 // more than any of these tests writes
	if f.can(StaleReads) {
		f.Lag(more)
	}
}

// It cancels every second of 200,000 activities, so that ranges do not shorten the record.
func massCancelFragmented(f *fixture) {
	e := f.start("a")
	const n = 200_000
	var ids []history.Range
	for id := int64(4); id < n; id += 2 {
		ids = append(ids, one(id))
	}
	e.ack(e.recordTurn(cancels("orchestration_terminal_failed", ids...)))
	c := f.cancels(e.head.ExecutionID)
	const step = 997 // odd, so that it checks even and odd IDs; each check searches the ranges
	for id := int64(1); id <= n; id += step {
		if want := id >= 4 && id < n && id%2 == 0; c.Of(id).Requested != want {
			f.t.Fatalf("activity %d: %v, want %v", id, c.Of(id).Requested, want)
		}
	}
}

// Unsorted ranges of different sizes are read as they were written.
func anyCancels(f *fixture) {
	e := f.start("a")
	ids := []history.Range{{First: 900, Last: 950}, one(7), {First: 100, Last: 163}, one(9), one(11), one(13), {First: 8000, Last: 8001}, one(15)}
	e.ack(e.recordTurn(cancels("requested", ids...), cancels("timeout", one(8), one(10))))
	c := f.cancels(e.head.ExecutionID)
	want := map[int64]string{8: "timeout", 10: "timeout"}
	for _, r := range ids {
		for id := r.First; id <= r.Last; id++ {
			want[id] = "requested"
		}
	}
	for id := int64(1); id < 8100; id++ {
		if got := c.Of(id).Reason; got != want[id] {
			f.t.Errorf("activity %d: %q, want %q", id, got, want[id])
		}
	}
}

func firstReasonWins(f *fixture) {
	e := f.start("a")
	first := e.cancelTurn(turnStarted(), activity(Queue), activity(Queue), cancels("select_loser", one(3)))
	e.ack(first)
	second := e.cancelTurn(turnStarted(), cancels("requested", one(3), one(4)))
	e.ack(second)
	e.wantReasons("", "", "select_loser", "requested")
	f.redispatch(e, at(1))
	e.wantReasons("", "", "select_loser", "requested")
}

// laterTurnAdds: a turn writes only its own decisions. Earlier decisions stay, and come first.
func laterTurnAdds(f *fixture) {
	e := f.start("a")
	e.ack(e.cancelTurn(turnStarted(), activity(Queue), activity(Queue), activity(Queue), cancels("select_loser", one(3)), cancels("timeout", one(4))))
	e.commit(turnStarted())
	e.ack(e.cancelTurn(turnStarted(), cancels("requested", one(5))))
	e.ack(e.cancelTurn(turnStarted(), cancels("timeout", one(3), one(4), one(5))))
	e.wantReasons("", "", "select_loser", "timeout", "requested", "")
	var order []string
	for _, c := range f.cancels(e.head.ExecutionID) {
		order = append(order, c.Reason)
	}
	f.wantEqual("decisions", order, []string{"select_loser", "timeout", "requested", "timeout"})
}

// manyCancellingTurns: the turns fill several blocks, and some turns cancel nothing. A read from a segment returns all
// decisions from that segment on, unchanged. It returns an earlier decision unchanged or not at all.
func manyCancellingTurns(f *fixture) {
	const turns = 3*provider.CancelBlockTurns + 20
	e := f.start("a")
	decidedIn := map[int64]int64{} // by activity
	var again history.Range
	for n := range int64(turns) {
		if n%7 == 3 {
			e.ack(e.cancelTurn(turnStarted()))
		}
		ids := []history.Range{{First: 10 * n, Last: 10*n + n%3}, one(10*n + 5)}
		t := e.recordTurn(cancels(reasonOf(n), ids...), cancels("too late", again, one(10*n+5)))
		e.ack(t)
		for _, r := range ids {
			for id := r.First; id <= r.Last; id++ {
				decidedIn[id] = t.Head.Segment + 1
			}
		}
		again = ids[0]
	}
	last := e.head.Segment
	for _, from := range []int64{0, 1, 2, 73, 74, 75, 76, 77, 148, 149, 150, 151, last - 90, last - 70, last - 20, last - 1, last, last + 1} {
		record, _ := f.cancelsFrom(e.head.ExecutionID, from)
		for id := range int64(10 * turns) {
			segment, decided := decidedIn[id]
			switch got := record.Of(id).Reason; {
			case decided && segment >= from && got != reasonOf(id/10), !decided && got != "":
				f.t.Fatalf("read from segment %d: activity %d, cancelled in segment %d (%v), has reason %q, want %q",
					from, id, segment, decided, got, reasonOf(id/10))
			}
		}
	}
}

func reasonOf(n int64) string { return "reason " + text(n) }

// readingOn: a reader that continues from next finds the later decisions and the open ones.
func readingOn(f *fixture) {
	e := f.start("a")
	x := e.head.ExecutionID
	e.commit(turnStarted(), activity(Queue), activity(Queue))
	known, next := f.cancelsFrom(x, 1)
	if len(known) > 0 {
		f.t.Errorf("nothing is cancelled, but the record contains %s", text(known))
	}
	for n := range int64(provider.CancelBlockTurns + 40) {
		e.ack(e.recordTurn(cancels(reasonOf(n), one(100+n))))
		if n%10 != 0 {
			continue
		}
		known, next = f.cancelsFrom(x, next)
		if got := known.Of(100 + n).Reason; got != reasonOf(n) {
			f.t.Errorf("activity %d: %q", 100+n, got)
		}
		f.Advance(shortPass)
	}
	e.commit(turnStarted())
	quiet, _ := f.cancelsFrom(x, e.head.Segment)
	if len(quiet) > 0 {
		f.t.Errorf("nothing is cancelled from the last segment, but the record contains %s", text(quiet))
	}
	f.must(f.p.DeleteInstance(f.ctx(), "a", true))
	for _, from := range []int64{1, next, e.head.Segment, e.head.Segment + 100} {
		if known, _ = f.cancelsFrom(x, from); !known.Of(3).Deleted {
			f.t.Errorf("read from segment %d: record does not mark the instance as deleted: %s", from,
				shorten(text(known)))
		}
	}
}

// shortPass is a short wait, also in real time.
const shortPass = 10 * time.Millisecond

// pollingOn: consecutive polls return all decisions, even if the reads are stale. The last poll is not stale.
func pollingOn(f *fixture) {
	e := f.start("a")
	seen := map[int64]string{}
	next := int64(0)
	poll := func() {
		f.t.Helper()
		known, from, err := f.p.PollCancels(f.ctx(), e.head.ExecutionID, next)
		f.must(err)
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
		e.ack(e.recordTurn(cancels(want[id], one(id))))
		poll()
		for id, reason := range seen {
			f.wantEqual("cancel info must equal the decision", reason, want[id])
		}
	}
	f.Lag(0)
	poll()
	f.wantEqual("cancel info", seen, want)
}

func strongCancels(f *fixture) {
	e := f.start("a")
	e.ack(e.recordTurn(cancels("requested", one(3))))
	f.Lag(3)
	e.ack(e.recordTurn(cancels("timeout", one(4))))
	e.wantReasons("", "", "requested", "timeout")
}

// severalItems: the reasons do not compress, and take twice the size of an item of most stores.
func severalItems(f *fixture) {
	e := f.start("a")
	t := e.turn(turnStarted())
	for id := range int64(600) {
		t.Cancels = append(t.Cancels, provider.ActivityCancel{IDs: []history.Range{one(id + 3)}, Reason: gibberish(uint64(id), 1<<10), At: f.now()})
	}
	e.ack(t)
	e.ack(e.recordTurn(cancels("requested", one(3), one(9999))))
	for _, from := range []int64{0, 1} {
		record, _ := f.cancelsFrom(e.head.ExecutionID, from)
		for i := range t.Cancels {
			if got := record.Of(int64(i + 3)).Reason; got != t.Cancels[i].Reason {
				f.t.Fatalf("read from segment %d: activity %d has reason %q, want %q", from, i+3, shorten(got),
					shorten(t.Cancels[i].Reason))
			}
		}
		f.wantEqual("reason of another turn", record.Of(9999).Reason, "requested")
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

func tooManyCancels(f *fixture) {
	e := f.start("a")
	t := e.turn(turnStarted())
	for id := range int64(6 << 10) {
		t.Cancels = append(t.Cancels, provider.ActivityCancel{IDs: []history.Range{one(id + 3)}, Reason: gibberish(uint64(id), 1<<10), At: f.now()})
	}
	_, err := f.p.AckOrchestrationItem(f.ctx(), t)
	f.wantIs(err, provider.ErrTooLarge)
	e.wantReasons("", "", "")
	e.wantSegments()
}

func cancelUnknown(f *fixture) {
	e := f.start("a")
	e.commit(turnStarted(), activity(Queue))
	e.commit(completed(3))
	e.ack(e.recordTurn(cancels("requested", one(3), one(4711))))
	e.commit(turnStarted(), activity(Queue))
	f.wantStatus("a", provider.StatusRunning)
	if c := f.cancels("nobody's"); len(c) > 0 {
		f.t.Errorf("unknown execution has the record %s", text(c))
	}
}

// cancelledWork returns the three work items of an execution as a worker holds them. The second one is cancelled.
func (f *fixture) cancelledWork() []provider.LockedWorkItem {
	f.t.Helper()
	e := f.quiet("a")
	e.commit(turnStarted(), activity(Queue), activity(Queue), activity(Queue))
	items, unreadable := f.p.DecodeWorkItems(f.ctx(), f.fetch(Queue, 3))
	if len(items) != 3 || len(unreadable) > 0 {
		f.t.Fatalf("%d work items, %d unreadable", len(items), len(unreadable))
	}
	slices.SortFunc(items, func(a, b provider.LockedWorkItem) int { return int(a.ActivityID - b.ActivityID) })
	e.ack(e.cancelTurn(turnStarted(), cancels("requested", one(4))))
	return items
}

// wantRenewals fails unless none of the three renewals is lost and only the second is cancelled.
func (f *fixture) wantRenewals(got []provider.Renewal) {
	f.t.Helper()
	if len(got) != 3 {
		f.t.Fatalf("%d renewals, want 3", len(got))
	}
	for i, r := range got {
		if r.Lost || r.Cancel.Requested != (i == 1) {
			f.t.Errorf("renewal %d: %+v", i, r)
		}
	}
	if c := got[1].Cancel; c.Reason != "requested" || c.Message != "m" || c.RequestedAt.IsZero() {
		f.t.Errorf("renewal: %+v", c)
	}
}

func renewSurfaces(f *fixture) {
	items := f.cancelledWork()
	renewals, err := f.p.RenewWorkItemLocks(f.ctx(), Queue, longLock, items...)
	f.must(err)
	f.wantRenewals(renewals)
	for i := range items {
		f.wantEqual("locked until", renewals[i].Until, items[i].Record.LockedUntil())
	}
	none, err := f.p.RenewWorkItemLocks(f.ctx(), Queue, longLock)
	f.must(err)
	f.wantEqual("renewals without records", len(none), 0)
}

// renewLeases: a caller has only the token and the receipt handle of a message. A lost lease does not affect the
// others.
func renewLeases(f *fixture) {
	items := f.cancelledWork()
	leases := make([]provider.LockedWorkItem, len(items))
	for i := range items {
		w, err := f.p.VerifyWorkItemToken(f.ctx(), items[i].Token)
		f.must(err)
		leases[i] = provider.LockedWorkItem{WorkItem: w, Record: provider.Record{ID: text(i), ReceiptHandle: items[i].Record.ReceiptHandle}}
	}
	began := f.Now()
	renewals, err := f.p.RenewWorkItemLocks(f.ctx(), Queue, longLock, leases...)
	f.must(err)
	f.wantRenewals(renewals)
	for i, r := range renewals {
		if r.Until.Before(began.Add(longLock)) || r.Until.After(f.Now().Add(longLock)) {
			f.t.Errorf("renewal %d: locked until %v, now is %v", i, r.Until, f.Now())
		}
	}
	f.Advance(pastLock)
	f.wantNone(Queue, "after the first lock")
	if !f.can(StrictLocks) {
		return
	}
	f.must(f.p.DeleteRecords(f.ctx(), Queue, items[0].Record))
	leases[2].Record.ReceiptHandle = "nobody's"
	renewals, err = f.p.RenewWorkItemLocks(f.ctx(), Queue, longLock, leases...)
	f.must(err)
	if r := renewals; !r[0].Lost || r[1].Lost || !r[2].Lost || !r[0].Until.IsZero() || r[1].Until.IsZero() || !r[2].Until.IsZero() || !r[1].Cancel.Requested {
		f.t.Errorf("renewals %+v", r)
	}
}

func renewExtendsCancelled(f *fixture) {
	items := f.cancelledWork()
	renewals, err := f.p.RenewWorkItemLocks(f.ctx(), Queue, longLock, items...)
	f.must(err)
	f.wantRenewals(renewals)
	f.Advance(pastLock)
	f.wantNone(Queue, "after the first lock")
	for i := range items {
		if !items[i].Record.Held(f.Now()) {
			f.t.Errorf("the lock of work item %d is not extended", i)
		}
	}
	items[1].Record.EndHold()
	renewals, err = f.p.RenewWorkItemLocks(f.ctx(), Queue, longLock, items...)
	f.must(err)
	f.wantEqual("lost", []bool{renewals[0].Lost, renewals[1].Lost, renewals[2].Lost}, []bool{false, true, false})
}

func renewUnreadable(f *fixture) {
	items := f.cancelledWork()
	f.Fail(Fault{Operation: Read, Failure: Rejected, Times: 1})
	renewals, err := f.p.RenewWorkItemLocks(f.ctx(), Queue, longLock, items...)
	f.wantPermanent(err)
	if len(renewals) != 3 {
		f.t.Fatalf("renewals %+v", renewals)
	}
	for i, r := range renewals {
		if r.Lost || r.Cancel.Requested || r.Err != nil || r.CancelErr == nil || r.Until.IsZero() {
			f.t.Errorf("renewal %d: %+v", i, r)
		}
	}
	f.Advance(pastLock)
	f.wantNone(Queue, "after the first lock")
}

// ackWithoutCompletion: a cancelled activity that did not run is acknowledged. Nothing is sent, and its record is
// deleted.
func ackWithoutCompletion(f *fixture) {
	e := f.quiet("a")
	e.ack(e.cancelTurn(turnStarted(), activity(Queue), cancels("requested", one(3))))
	failed, err := f.p.AckWorkItems(f.ctx(), Queue, []provider.CompletedWorkItem{{LockedWorkItem: &f.locked(Queue)[0]}})
	f.must(err)
	if len(failed) > 0 {
		f.t.Errorf("%d failed", len(failed))
	}
	if ms := f.messages(); len(ms) > 0 {
		f.t.Errorf("messages to the orchestration: %s", text(ms))
	}
	f.Advance(pastLock)
	f.wantNothingSent()
}

// attemptsOfCancelled: deliveries and deaths of a cancelled activity count like those of any other.
func attemptsOfCancelled(f *fixture) {
	items := f.cancelledWork()
	for delivery := 1; delivery <= 3; delivery++ {
		if delivery > 1 {
			f.Advance(pastLock)
			items, _ = f.p.DecodeWorkItems(f.ctx(), f.fetch(Queue, 3))
		}
		if len(items) != 3 {
			f.t.Fatalf("delivery %d has %d work items, want 3", delivery, len(items))
		}
		for _, it := range items {
			f.wantEqual("delivery and attempt", []int{it.Record.ReceiveCount, it.Attempt}, []int{delivery, 1})
			f.wantDied(provider.Attempt{ExecutionID: it.ExecutionID, ActivityID: it.ActivityID, Record: it.Record}, delivery-1)
		}
	}
}

// completionAfterCancel: the outcome is accepted and sent. The turn decides that the code does not receive it.
func completionAfterCancel(f *fixture) {
	e := f.start("a")
	e.ack(e.cancelTurn(turnStarted(), activity(Queue), cancels("requested", one(3))))
	f.messages()
	done := provider.CompletedWorkItem{LockedWorkItem: &f.locked(Queue)[0], Outcome: &provider.ActivityOutcome{ActivityID: 3, Attempt: 1, Result: history.Payload("1")}}
	failed, err := f.p.AckWorkItems(f.ctx(), Queue, []provider.CompletedWorkItem{done})
	f.must(err)
	ms := f.messages()
	if len(failed) != 0 || len(ms) != 1 {
		f.t.Fatalf("%d failed, %d messages; want the outcome to be sent", len(failed), len(ms))
	}
	f.wantEqual("the outcome", ms[0].Outcomes, []provider.ActivityOutcome{*done.Outcome})
}

func cancelPerExecution(f *fixture) {
	e := f.start("a")
	t := e.continuing("x2", turnStarted(), activity(Queue), cancels("orchestration_terminal_continued_as_new", one(3)))
	t.Cancels = provider.CancelsOf(t.Events)
	_, err := f.p.AckOrchestrationItem(f.ctx(), t)
	f.must(err)
	if !f.cancels(e.instance.ExecutionID).Of(3).Requested {
		f.t.Error("ended execution has no cancel record")
	}
	if f.cancels("x2").Of(3).Requested {
		f.t.Error("next execution has the cancel record of the previous one")
	}
}

func endCancelsAll(f *fixture) {
	e := f.start("a")
	e.commit(turnStarted(), activity(Queue))
	by := cancels("orchestration_terminal_completed", one(3))
	by.RequestedBy = history.RequestedByEngine
	e.ack(e.cancelTurn(turnStarted(), by, ended("1")))
	e.wantReasons(slices.Repeat([]string{"orchestration_terminal_completed"}, 5)...)
	f.wantStatus("a", provider.StatusCompleted)
}

func largeCancel(f *fixture) {
	e := f.start("a")
	t := e.cancelTurn(turnStarted(), bulky(900<<10), cancels("requested", one(3)))
	e.ack(t)
	e.wantSegments(t)
	e.wantReasons("", "", "requested")
}

// orphanAfterDelete: an activity of a deleted instance is cancelled, whether it is running or queued. The same holds
// for an activity of an execution that has continued as new, and for one without a record.
func orphanAfterDelete(f *fixture) {
	e := f.start("a")
	e.commit(turnStarted(), activity(Queue))
	next := e.continueAs("x2", completed(3))
	t := next.cancelTurn(turnStarted(), activity(Queue), activity(Queue), cancels("select_loser", one(4)))
	next.ack(t)
	queued := f.locked(Queue)
	if f.can(Faults) { // the write that ends the instance also cancels them, not a later write
		f.Fail(Fault{Operation: Write, Failure: Rejected, After: 1})
		f.wantPermanent(f.p.DeleteInstance(f.ctx(), "a", true))
		f.Fail(Fault{})
		next.wantReasons("instance_deleted", "instance_deleted", "instance_deleted", "select_loser", "instance_deleted")
	}
	f.must(f.p.DeleteInstance(f.ctx(), "a", true))
	next.wantReasons("instance_deleted", "instance_deleted", "instance_deleted", "select_loser", "instance_deleted")
	e.wantReasons("instance_deleted", "instance_deleted", "instance_deleted")
	if len(queued) != 3 {
		f.t.Errorf("%d work items, want 3", len(queued))
	}
	for _, w := range queued {
		if info := f.cancels(w.ExecutionID).Of(w.ActivityID); !info.Requested || info.RequestedAt.IsZero() {
			f.t.Errorf("activity %d of execution %s: %+v", w.ActivityID, w.ExecutionID, info)
		}
	}
}

// lateCancelAfterDelete: the turn was running when the instance was deleted.
func lateCancelAfterDelete(f *fixture) {
	e := f.start("a")
	e.ack(e.cancelTurn(turnStarted(), activity(Queue), activity(Queue), cancels("select_loser", one(3))))
	late := e.cancelTurn(turnStarted(), cancels("requested", one(4)))
	f.must(f.p.DeleteInstance(f.ctx(), "a", true))
	_, err := f.p.AckOrchestrationItem(f.ctx(), late)
	f.wantIs(err, provider.ErrConflict)
	e.wantReasons("instance_deleted", "instance_deleted", "select_loser", "instance_deleted")
	if record := f.cancels(e.head.ExecutionID); !record.Of(3).Deleted || !record.Of(4).Deleted {
		f.t.Errorf("record does not mark the instance as deleted: %s", text(record))
	}
}

// damagedEndCancels: the decisions of turns stay although the history cannot be read.
func damagedEndCancels(f *fixture) {
	e := f.quiet("a")
	e.ack(e.cancelTurn(turnStarted(), activity(Queue), activity(Queue), cancels("select_loser", one(3))))
	e.commit(turnStarted())
	f.Damage(e.instance.ExecutionID, 1, Undecodable)
	f.enqueue(provider.Message{Kind: provider.MessageTerminate, InstanceID: "a"})
	f.must(f.p.TerminateCorrupt(f.ctx(), &f.messages()[0]))
	e.wantReasons("orchestration_terminal_terminated", "orchestration_terminal_terminated", "select_loser", "orchestration_terminal_terminated")
}

func unreadableCancels(f *fixture) {
	f.Fail(Fault{Operation: Read, Failure: Rejected, Times: 1})
	_, _, err := f.p.ReadCancels(f.ctx(), "x", 0)
	f.wantPermanent(err)
}
