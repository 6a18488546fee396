package queues

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// Poison tests that messages are not redelivered forever (R13). It covers delivery counts, crash markers and the
// recovery from dead-letter queues.
func Poison() kit.Group {
	const recovery = provider.CapabilityDeadLetterRecovery
	return kit.Group{Name: "poison", Cases: []kit.Case{
		{Name: "DeliveriesAreCountedFromOne", Run: countsFromOne, Visibility: 2 * time.Second},
		{Name: "DeliveriesAreCountedForEachMessage", Run: countsEach},
		{Name: "FirstMarkerReportsNoCrash", Run: firstMark},
		{Name: "EarlierMarkersAreCrashes", Run: earlierMarks},
		{Name: "MarkerIsWrittenOnce", Run: markedAgain},
		{Name: "MarkerWithLostResponseIsWrittenOnce", Run: lostMark, Needs: []kit.Capability{kit.Faults}},
		{Name: "UnmarkForgetsEarlierCrashes", Run: unmarked},
		{Name: "UnmarkKeepsLaterDelivery", Run: unmarkedLate},
		{Name: "ProgressForgetsEarlierMarkers", Run: progressed},
		{Name: "LateUnmarkRestoresNoMarker", Run: unmarkedAfter},
		{Name: "UnmarkWithoutMarker", Run: unmarkedTwice},
		{Name: "BatchMarkerIsWrittenIfNoneExists", Run: markedTogether},
		{Name: "BatchMarkerWithLostResponseIsWrittenOnce", Run: lostMarkTogether, Needs: []kit.Capability{kit.Faults}},
		{Name: "MarkersBelongToRecordAndTarget", Run: markersBelongToTarget},
		{Name: "RejectedMarkersAreErrors", Run: refusedMarks, Needs: []kit.Capability{kit.Faults}},
		{Name: "MovedRecordIsFound", Run: movedAreFound, Optional: recovery},
		{Name: "CopiesAreNotReturnedAgain", Run: annotatedAreNotMoved, Optional: recovery},
		{Name: "CopiesStayVisible", Run: copiesStayVisible, Optional: recovery},
		{Name: "StoredMovedRecordIsACopy", Run: storedAreCopies, Optional: recovery, Visibility: 2 * time.Second},
		{Name: "ManyMovedRecords", Run: manyMoved, Optional: recovery, Needs: []kit.Capability{kit.VirtualTime}},
		{
			Name: "UnstoredMovedRecordIsFoundAgain", Run: movedAgain, Optional: recovery,
			Needs: []kit.Capability{kit.VirtualTime},
		},
		{Name: "InstanceIsBlockedWithoutItsHistory", Run: blockedWithout},
		{Name: "OnlyTheCurrentExecutionIsBlocked", Run: blockedOthers},
		{Name: "EndedInstanceIsNotBlocked", Run: blockedAfterEnd},
	}}
}

func countsFromOne(f *kit.Fixture) {
	f.Start("a").Commit(kit.TurnStarted(), kit.Activity(kit.Queue), kit.Timer(f.StoredNow()))
	for want := 1; want <= 3; want++ {
		for _, queue := range []string{provider.QueueInbox, kit.Queue, provider.QueueTimers} {
			rs := f.Receive(queue)
			if len(rs) != 1 || rs[0].ReceiveCount != want {
				f.T.Fatalf("delivery %d from queue %s: got %s", want, queue, kit.Text(rs))
			}
		}
		f.Advance(3 * time.Second)
	}
}

func countsEach(f *kit.Fixture) {
	e := f.StartWithoutWake("a")
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	first := f.Receive(kit.Queue)
	f.Must(f.Provider.AbandonRecords(f.Ctx(), kit.Queue, 0, first...))
	e.Commit(kit.Activity(kit.Queue))
	counts := map[string]int{}
	for rs := f.Receive(kit.Queue); len(rs) > 0; rs = f.Receive(kit.Queue) {
		for _, r := range rs {
			counts[r.ID] = r.ReceiveCount
		}
	}
	if n := counts[first[0].ID]; len(counts) != 2 || n < 1 || n > 2 {
		f.T.Errorf("first message has %d deliveries, want 1 or 2; %d messages, want 2", n, len(counts))
	}
	delete(counts, first[0].ID)
	for _, n := range counts {
		if n != 1 {
			f.T.Errorf("%d deliveries reported of a message that was received once", n)
		}
	}
}

// attempt returns a delivery of a record.
func attempt(record string, delivery int) provider.Delivery {
	return provider.Delivery{
		ExecutionID: "x", ActivityID: 7, Record: provider.Record{ID: record, ReceiveCount: delivery},
	}
}

func firstMark(f *kit.Fixture) { f.WantCrashes(attempt("r", 11), 0) }

func earlierMarks(f *kit.Fixture) {
	for n := range 4 {
		f.WantCrashes(attempt("r", 11+n), n)
	}
	f.WantCrashes(attempt("r", 20), 4) // the deliveries in between left no marker
}

func markedAgain(f *kit.Fixture) {
	f.WantCrashes(attempt("r", 11), 0)
	f.WantCrashes(attempt("r", 11), 0)
	f.WantCrashes(attempt("r", 12), 1)
	f.WantCrashes(attempt("r", 12), 1)
	f.WantCrashes(attempt("r", 11), 1) // by a function that was frozen
	f.WantCrashes(attempt("r", 13), 2)
}

func lostMark(f *kit.Fixture) {
	hits := f.Fail(kit.Fault{Operation: kit.Update, Failure: kit.ResponseLost, Times: 1})
	f.WantCrashes(attempt("r", 11), 0)
	if hits() != 1 {
		f.T.Error("no response was lost")
	}
	f.WantCrashes(attempt("r", 12), 1)
}

func unmarked(f *kit.Fixture) {
	f.WantCrashes(attempt("r", 11), 0)
	f.WantCrashes(attempt("r", 12), 1)
	f.Must(f.Provider.DeleteCrashMarker(f.Ctx(), attempt("r", 12)))
	f.WantCrashes(attempt("r", 13), 0)
	f.WantCrashes(attempt("r", 14), 1)
}

func unmarkedLate(f *kit.Fixture) {
	for n := range 3 {
		f.WantCrashes(attempt("r", 11+n), n)
	}
	f.Must(f.Provider.DeleteCrashMarker(f.Ctx(), attempt("r", 12)))
	f.WantCrashes(attempt("r", 14), 1) // the 13th
}

// progressed checks that a delivery that has stored progress and continues keeps its own marker and removes the others.
func progressed(f *kit.Fixture) {
	for n := range 3 {
		f.WantCrashes(attempt("r", 11+n), n)
	}
	on := attempt("r", 13)
	on.Progressed = true
	for range 2 {
		f.Must(f.Provider.DeleteCrashMarker(f.Ctx(), on))
	}
	f.WantCrashes(attempt("r", 14), 1) // the 13th
	f.Must(f.Provider.DeleteCrashMarker(f.Ctx(), attempt("r", 14)))
	f.WantCrashes(attempt("r", 15), 0)
}

// unmarkedAfter removes the marker of a frozen delivery after the marker of a later delivery.
func unmarkedAfter(f *kit.Fixture) {
	f.WantCrashes(attempt("r", 11), 0)
	f.WantCrashes(attempt("r", 12), 1)
	f.Must(f.Provider.DeleteCrashMarker(f.Ctx(), attempt("r", 12)))
	f.Must(f.Provider.DeleteCrashMarker(f.Ctx(), attempt("r", 11)))
	f.WantCrashes(attempt("r", 13), 0)
}

func unmarkedTwice(f *kit.Fixture) {
	f.Must(f.Provider.DeleteCrashMarker(f.Ctx(), attempt("r", 11)))
	f.WantCrashes(attempt("r", 11), 0)
	for range 2 {
		f.Must(f.Provider.DeleteCrashMarker(f.Ctx(), attempt("r", 11)))
	}
	f.WantCrashes(attempt("r", 12), 0)
}

// together returns a delivery that runs concurrently with others.
func together(delivery int) provider.Delivery {
	a := attempt("r", delivery)
	a.Batched = true
	return a
}

func markedTogether(f *kit.Fixture) {
	f.WantCrashes(together(3), 0)
	f.WantCrashes(together(3), 0) // repeated call
	for n := 4; n < 7; n++ {
		f.WantCrashes(together(n), 1) // the delivery leaves no marker
	}
	f.WantCrashes(attempt("r", 7), 1)
	f.WantCrashes(together(8), 2)
	f.WantCrashes(together(6), 2) // by a function that was frozen
	f.Must(f.Provider.DeleteCrashMarker(f.Ctx(), attempt("r", 7)))
	f.WantCrashes(together(9), 0)
	f.WantCrashes(together(10), 1)
}

func lostMarkTogether(f *kit.Fixture) {
	f.Fail(kit.Fault{Operation: kit.Update, Failure: kit.ResponseLost, Times: 1})
	f.WantCrashes(together(3), 0)
	f.WantCrashes(together(4), 1)
}

func markersBelongToTarget(f *kit.Fixture) {
	f.WantCrashes(attempt("r", 11), 0)
	other, turn := attempt("r", 12), attempt("r", 12)
	other.ExecutionID, turn.ActivityID = "y", 0
	f.WantCrashes(other, 0)
	f.WantCrashes(turn, 0)
	f.WantCrashes(attempt("another", 12), 0)
	next := attempt("r", 12)
	next.ActivityID = 70
	f.WantCrashes(next, 0)
	f.Must(f.Provider.DeleteCrashMarker(f.Ctx(), turn))
	f.WantCrashes(attempt("r", 12), 1)
}

func refusedMarks(f *kit.Fixture) {
	f.Fail(kit.Fault{Operation: kit.Update, Failure: kit.Rejected})
	if _, err := f.Provider.PutCrashMarker(f.Ctx(), attempt("r", 11)); err == nil {
		f.T.Error("no error although the crash marker was rejected")
	}
	if err := f.Provider.DeleteCrashMarker(f.Ctx(), attempt("r", 11)); err == nil {
		f.T.Error("no error although the deletion of the crash marker was rejected")
	}
}

// moved returns the records that queues have moved to their dead-letter queues, by queue.
func moved(f *kit.Fixture) map[string][]provider.DeadLetteredRecord {
	f.T.Helper()
	all := map[string][]provider.DeadLetteredRecord{}
	for m, err := range f.Provider.DeadLetteredRecords(f.Ctx()) {
		f.Must(err)
		all[m.Queue] = append(all[m.Queue], m)
	}
	return all
}

func hubQueues() []string {
	return []string{provider.QueueInbox, provider.QueueTimers, kit.Queue, kit.OtherQueue}
}

func movedAreFound(f *kit.Fixture) {
	if ms := moved(f); len(ms) > 0 {
		f.T.Errorf("records that SQS moved: %s, want none", kit.Text(ms))
	}
	for n, queue := range hubQueues() {
		f.PutDeadLetter(queue, kit.Record(n, "body of "+queue))
	}
	found := moved(f)
	for _, queue := range hubQueues() {
		if ms := found[queue]; len(ms) != 1 || ms[0].Record.Body != "body of "+queue || ms[0].Record.ID == "" {
			f.T.Errorf("moved from %s: got %s", queue, kit.Text(ms))
		}
	}
	if g := found[provider.QueueInbox][0].Record.Group; g != "g" {
		f.T.Errorf("message group is %q", g)
	}
}

func annotatedAreNotMoved(f *kit.Fixture) {
	for n, queue := range hubQueues() {
		f.Must(f.Provider.DeadLetter(f.Ctx(), queue, provider.Unreadable{
			Record: kit.Record(n, "a copy"), Err: errors.New("why"),
		}))
		f.PutDeadLetter(queue, kit.Record(100+n, "moved"))
	}
	for queue, ms := range moved(f) {
		if len(ms) != 1 || ms[0].Record.Body != "moved" {
			f.T.Errorf("moved from %s: got %s", queue, kit.Text(ms))
		}
	}
}

// copiesStayVisible tests that an operator finds the copies directly after a search for moved records.
func copiesStayVisible(f *kit.Fixture) {
	for n, queue := range hubQueues() {
		f.Must(f.Provider.DeadLetter(f.Ctx(), queue, provider.Unreadable{
			Record: kit.Record(n, "a copy"), Err: errors.New("why"),
		}))
	}
	if ms := moved(f); len(ms) > 0 {
		f.T.Errorf("records that SQS moved: %s, want none", kit.Text(ms))
	}
	for _, queue := range hubQueues() {
		if rs := f.ReceiveDead(queue); len(rs) != 1 || rs[0].Body != "a copy" {
			f.T.Errorf("visible dead letters of %s: %s, want the copy", queue, kit.Text(rs))
		}
	}
}

func storedAreCopies(f *kit.Fixture) {
	for n, queue := range hubQueues() {
		f.PutDeadLetter(queue, kit.Record(n, "moved"))
	}
	for _, ms := range moved(f) {
		f.Must(f.Provider.AnnotateDeadLetter(f.Ctx(), ms[0], errors.New("recovered")))
	}
	for _, queue := range hubQueues() {
		if rs := f.ReceiveDead(queue); len(rs) != 1 || rs[0].Body != "moved" {
			f.T.Errorf("dead letters of %s: %s, want only the copy", queue, kit.Text(rs))
		}
	}
	f.Advance(3 * time.Second)
	if ms := moved(f); len(ms) > 0 {
		f.T.Errorf("returned again: got %s", kit.Text(ms))
	}
}

func manyMoved(f *kit.Fixture) {
	const n = 33
	for i := range n {
		r := kit.Record(i, strconv.Itoa(i))
		r.Group = fmt.Sprint("g", i%7)
		f.PutDeadLetter(provider.QueueInbox, r)
		f.PutDeadLetter(kit.Queue, r)
	}
	for range 3 { // a search may leave some records of a group to the next search
		f.Advance(2 * time.Minute)
		for _, queue := range []string{provider.QueueInbox, kit.Queue} {
			for m, err := range f.Provider.DeadLetteredRecords(f.Ctx()) {
				f.Must(err)
				if m.Queue == queue {
					f.Must(f.Provider.AnnotateDeadLetter(f.Ctx(), m, errors.New("recovered")))
				}
			}
		}
	}
	f.Advance(2 * time.Minute)
	seen := map[string]int{}
	for rs := f.ReceiveDead(kit.Queue); len(rs) > 0; rs = f.ReceiveDead(kit.Queue) {
		for _, r := range rs {
			seen[r.Body]++
		}
	}
	if len(seen) != n {
		f.T.Errorf("got %d dead letters, want %d", len(seen), n)
	}
}

func movedAgain(f *kit.Fixture) {
	f.PutDeadLetter(kit.Queue, kit.Record(1, "moved"))
	first := moved(f)[kit.Queue]
	f.Advance(5 * time.Minute)
	if again := moved(f)[kit.Queue]; len(first) != 1 || len(again) != 1 {
		f.T.Errorf("moved records: %d, then %d; want 1 each time", len(first), len(again))
	}
}

func blockedWithout(f *kit.Fixture) {
	f.ReportBuilds("b1")
	e := f.Start("a")
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	why := &history.Failure{Type: history.TypeCorrupt, Message: "segment 1"}
	f.Must(f.Provider.BlockInstance(f.Ctx(), "a", e.Instance.ExecutionID, "b1", why))
	in := f.Instance("a")
	if in.Status != provider.StatusBlocked {
		f.T.Errorf("got status %s", in.Status)
	}
	f.WantEqual("diagnosis", in.Diagnosis, why)
	f.WantBlocked()
	f.ReportBuilds("b2")
	f.WantBlocked("a")
	f.Must(f.Provider.UnblockInstance(f.Ctx(), "a", e.Instance.ExecutionID))
	if in := f.Instance("a"); in.Status != provider.StatusRunning || in.Diagnosis != nil {
		f.T.Errorf("got status %s: %+v", in.Status, in.Diagnosis)
	}
	f.WantBlocked()
	e.Commit(kit.Completed(3), kit.Ended(`1`)) // turns of the instance still write the status
	f.WantStatus("a", provider.StatusCompleted)
}

func blockedOthers(f *kit.Fixture) {
	e := f.Start("a")
	e.Commit(kit.TurnStarted())
	why := &history.Failure{Type: history.TypeCorrupt, Message: "m"}
	f.Must(f.Provider.BlockInstance(f.Ctx(), "a", "another", "b1", why))
	f.Must(f.Provider.BlockInstance(f.Ctx(), "missing", "x", "b1", why))
	f.Must(f.Provider.UnblockInstance(f.Ctx(), "missing", "x"))
	f.WantStatus("a", provider.StatusRunning)
	_, err := f.Provider.ReadInstance(f.Ctx(), "missing")
	f.WantErrorIs(err, provider.ErrNotFound)
}

func blockedAfterEnd(f *kit.Fixture) {
	e := f.Start("a")
	e.Commit(kit.TurnStarted(), kit.Ended(`1`))
	why := &history.Failure{Type: history.TypeCorrupt, Message: "m"}
	f.Must(f.Provider.BlockInstance(f.Ctx(), "a", e.Instance.ExecutionID, "b1", why))
	f.WantStatus("a", provider.StatusCompleted)
	f.Must(f.Provider.UnblockInstance(f.Ctx(), "a", e.Instance.ExecutionID))
	f.WantStatus("a", provider.StatusCompleted)
}

// heldLater cancels one of two timers while their messages are in the queue. The other timer is found when it is due.
func heldLater(f *kit.Fixture) {
	e := f.StartWithoutWake("a")
	due := f.StoredNow().Add(time.Hour)
	e.Commit(kit.TurnStarted(), kit.Timer(due), kit.Timer(due))
	f.Advance(15 * time.Minute)
	held := f.Timers()
	slices.SortFunc(held, func(a, b provider.LockedTimer) int { return int(a.TimerID - b.TimerID) })
	if len(held) != 2 {
		f.T.Fatalf("got %d timers after 15 minutes", len(held))
	}
	e.Commit(kit.TurnStarted(), history.Event{
		Kind: history.TimerCancelled, SourceEventID: 3, Reason: "requested",
		RequestedBy: history.RequestedByOrchestration,
	})
	f.Must(f.Provider.HoldTimers(f.Ctx(), held[0].Timer, held[1].Timer))
	for f.Now().Before(due.Add(2 * time.Second)) {
		f.Advance(time.Second)
		for _, t := range f.Timers() {
			if t.TimerID == 4 && !f.Now().Before(due.Add(-time.Second)) {
				return
			}
			f.Must(f.Provider.HoldTimers(f.Ctx(), t.Timer))
		}
	}
	f.T.Error("pending timer was not received")
}
