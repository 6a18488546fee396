package providertest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Messages are not redelivered forever (R13): delivery counts, crash markers, and the recovery from dead-letter queues.
func poison() group {
	return group{"poison", []testCase{
		{name: "DeliveriesAreCountedFromOne", run: countsFromOne, visibility: 2 * time.Second},
		{name: "DeliveriesAreCountedForEachMessage", run: countsEach},
		{name: "AFirstMarkTellsOfNoDeath", run: firstMark},
		{name: "EarlierMarksAreDeaths", run: earlierMarks},
		{name: "AMarkIsMadeOnce", run: markedAgain},
		{name: "AMarkWhoseAnswerIsLostIsMadeOnce", run: lostMark, needs: []Capability{Faults}},
		{name: "AnUnmarkForgetsTheDeathsBefore", run: unmarked},
		{name: "AnUnmarkLeavesALaterDelivery", run: unmarkedLate},
		{name: "ProgressForgetsEarlierMarks", run: progressed},
		{name: "ALateUnmarkBringsNoMarkBack", run: unmarkedAfter},
		{name: "AnUnmarkOfWhatHasNoMark", run: unmarkedTwice},
		{name: "AMarkTogetherIsMadeWhereNoneStands", run: markedTogether},
		{name: "AMarkTogetherWhoseAnswerIsLostIsMadeOnce", run: lostMarkTogether, needs: []Capability{Faults}},
		{name: "MarksAreOfOneRecordAndWhatItIsFor", run: marksAreApart},
		{name: "RefusedMarksAreErrors", run: refusedMarks, needs: []Capability{Faults}},
		{name: "WhatAQueueMovedIsFound", run: movedAreFound},
		{name: "CopiesAreForPeople", run: copiesAreNotMoved},
		{name: "AMovedRecordThatIsKeptIsACopy", run: keptAreCopies, visibility: 2 * time.Second},
		{name: "ManyMovedRecords", run: manyMoved, needs: []Capability{VirtualTime}},
		{name: "OneThatIsNotKeptIsFoundAgain", run: movedAgain, needs: []Capability{VirtualTime}},
		{name: "AnInstanceIsBlockedWithoutItsHistory", run: blockedWithout},
		{name: "OnlyAnExecutionThatIsTheInstancesIsBlocked", run: blockedOthers},
		{name: "WhatIsOverIsNotBlocked", run: blockedOver},
	}}
}

func countsFromOne(f *fixture) {
	f.start("a").commit(turnStarted(), activity(Queue), timer(f.now()))
	for want := 1; want <= 3; want++ {
		for _, queue := range []string{provider.QueueInbox, Queue, provider.QueueTimers} {
			rs := f.Receive(queue)
			if len(rs) != 1 || rs[0].ReceiveCount != want {
				f.t.Fatalf("delivery %d from queue %s: %s", want, queue, text(rs))
			}
		}
		f.Advance(3 * time.Second)
	}
}

func countsEach(f *fixture) {
	e := f.quiet("a")
	e.commit(turnStarted(), activity(Queue))
	first := f.Receive(Queue)
	f.must(f.p.AbandonRecords(f.ctx(), Queue, 0, first...))
	e.commit(activity(Queue))
	counts := map[string]int{}
	for rs := f.Receive(Queue); len(rs) > 0; rs = f.Receive(Queue) {
		for _, r := range rs {
			counts[r.ID] = r.ReceiveCount
		}
	}
	if n := counts[first[0].ID]; len(counts) != 2 || n < 1 || n > 2 {
		f.t.Errorf("first message has %d deliveries, want 1 or 2; %d messages, want 2", n, len(counts))
	}
	delete(counts, first[0].ID)
	for _, n := range counts {
		if n != 1 {
			f.t.Errorf("%d deliveries reported of a message that was received once", n)
		}
	}
}

// attempt returns a delivery of a record.
func attempt(record string, delivery int) provider.Attempt {
	return provider.Attempt{ExecutionID: "x", ActivityID: 7, Record: provider.Record{ID: record, ReceiveCount: delivery}}
}

// wantDied marks an attempt, and fails unless this number of attempts died before.
func (f *fixture) wantDied(a provider.Attempt, want int) {
	f.t.Helper()
	died, err := f.p.PutCrashMarker(f.ctx(), a)
	f.must(err)
	if died != want {
		f.t.Errorf("%d crashes before delivery %d of %s, want %d", died, a.Record.ReceiveCount, a.Record.ID, want)
	}
}

func firstMark(f *fixture) { f.wantDied(attempt("r", 11), 0) }

func earlierMarks(f *fixture) {
	for n := range 4 {
		f.wantDied(attempt("r", 11+n), n)
	}
	f.wantDied(attempt("r", 20), 4) // the deliveries in between left no marker
}

func markedAgain(f *fixture) {
	f.wantDied(attempt("r", 11), 0)
	f.wantDied(attempt("r", 11), 0)
	f.wantDied(attempt("r", 12), 1)
	f.wantDied(attempt("r", 12), 1)
	f.wantDied(attempt("r", 11), 1) // by a function that was frozen
	f.wantDied(attempt("r", 13), 2)
}

func lostMark(f *fixture) {
	hits := f.Fail(Fault{Operation: Update, Failure: ResponseLost, Times: 1})
	f.wantDied(attempt("r", 11), 0)
	if hits() != 1 {
		f.t.Error("no response was lost")
	}
	f.wantDied(attempt("r", 12), 1)
}

func unmarked(f *fixture) {
	f.wantDied(attempt("r", 11), 0)
	f.wantDied(attempt("r", 12), 1)
	f.must(f.p.DeleteCrashMarker(f.ctx(), attempt("r", 12)))
	f.wantDied(attempt("r", 13), 0)
	f.wantDied(attempt("r", 14), 1)
}

func unmarkedLate(f *fixture) {
	for n := range 3 {
		f.wantDied(attempt("r", 11+n), n)
	}
	f.must(f.p.DeleteCrashMarker(f.ctx(), attempt("r", 12)))
	f.wantDied(attempt("r", 14), 1) // the 13th
}

// progressed: a delivery that continues and has stored progress keeps its own marker and removes the others.
func progressed(f *fixture) {
	for n := range 3 {
		f.wantDied(attempt("r", 11+n), n)
	}
	on := attempt("r", 13)
	on.Progressed = true
	for range 2 {
		f.must(f.p.DeleteCrashMarker(f.ctx(), on))
	}
	f.wantDied(attempt("r", 14), 1) // the 13th
	f.must(f.p.DeleteCrashMarker(f.ctx(), attempt("r", 14)))
	f.wantDied(attempt("r", 15), 0)
}

// unmarkedAfter: a frozen delivery is unmarked after a later one was.
func unmarkedAfter(f *fixture) {
	f.wantDied(attempt("r", 11), 0)
	f.wantDied(attempt("r", 12), 1)
	f.must(f.p.DeleteCrashMarker(f.ctx(), attempt("r", 12)))
	f.must(f.p.DeleteCrashMarker(f.ctx(), attempt("r", 11)))
	f.wantDied(attempt("r", 13), 0)
}

func unmarkedTwice(f *fixture) {
	f.must(f.p.DeleteCrashMarker(f.ctx(), attempt("r", 11)))
	f.wantDied(attempt("r", 11), 0)
	for range 2 {
		f.must(f.p.DeleteCrashMarker(f.ctx(), attempt("r", 11)))
	}
	f.wantDied(attempt("r", 12), 0)
}

// together returns a delivery that runs concurrently with others.
func together(delivery int) provider.Attempt {
	a := attempt("r", delivery)
	a.Batched = true
	return a
}

func markedTogether(f *fixture) {
	f.wantDied(together(3), 0)
	f.wantDied(together(3), 0) // the same again
	for n := 4; n < 7; n++ {
		f.wantDied(together(n), 1) // it leaves no marker
	}
	f.wantDied(attempt("r", 7), 1)
	f.wantDied(together(8), 2)
	f.wantDied(together(6), 2) // by a function that was frozen
	f.must(f.p.DeleteCrashMarker(f.ctx(), attempt("r", 7)))
	f.wantDied(together(9), 0)
	f.wantDied(together(10), 1)
}

func lostMarkTogether(f *fixture) {
	f.Fail(Fault{Operation: Update, Failure: ResponseLost, Times: 1})
	f.wantDied(together(3), 0)
	f.wantDied(together(4), 1)
}

func marksAreApart(f *fixture) {
	f.wantDied(attempt("r", 11), 0)
	other, turn := attempt("r", 12), attempt("r", 12)
	other.ExecutionID, turn.ActivityID = "y", 0
	f.wantDied(other, 0)
	f.wantDied(turn, 0)
	f.wantDied(attempt("another", 12), 0)
	next := attempt("r", 12)
	next.ActivityID = 70
	f.wantDied(next, 0)
	f.must(f.p.DeleteCrashMarker(f.ctx(), turn))
	f.wantDied(attempt("r", 12), 1)
}

func refusedMarks(f *fixture) {
	f.Fail(Fault{Operation: Update, Failure: Rejected})
	if _, err := f.p.PutCrashMarker(f.ctx(), attempt("r", 11)); err == nil {
		f.t.Error("no error although the crash marker was rejected")
	}
	if err := f.p.DeleteCrashMarker(f.ctx(), attempt("r", 11)); err == nil {
		f.t.Error("no error although the deletion of the crash marker was rejected")
	}
}

// moved returns the records that queues have moved to their dead-letter queues, by queue.
func (f *fixture) moved() map[string][]provider.DeadLetteredRecord {
	f.t.Helper()
	all := map[string][]provider.DeadLetteredRecord{}
	for m, err := range f.p.DeadLetteredRecords(f.ctx()) {
		f.must(err)
		all[m.Queue] = append(all[m.Queue], m)
	}
	return all
}

func hubQueues() []string {
	return []string{provider.QueueInbox, provider.QueueTimers, Queue, OtherQueue}
}

func movedAreFound(f *fixture) {
	if ms := f.moved(); len(ms) > 0 {
		f.t.Errorf("records that SQS moved: %s, want none", text(ms))
	}
	for n, queue := range hubQueues() {
		f.PutDeadLetter(queue, record(n, "body of "+queue))
	}
	found := f.moved()
	for _, queue := range hubQueues() {
		if ms := found[queue]; len(ms) != 1 || ms[0].Record.Body != "body of "+queue || ms[0].Record.ID == "" {
			f.t.Errorf("moved from %s: %s", queue, text(ms))
		}
	}
	if g := found[provider.QueueInbox][0].Record.Group; g != "g" {
		f.t.Errorf("message group is %q", g)
	}
}

func copiesAreNotMoved(f *fixture) {
	for n, queue := range hubQueues() {
		f.must(f.p.DeadLetter(f.ctx(), queue, provider.Unreadable{Record: record(n, "a copy"), Err: errors.New("why")}))
		f.PutDeadLetter(queue, record(100+n, "moved"))
	}
	for queue, ms := range f.moved() {
		if len(ms) != 1 || ms[0].Record.Body != "moved" {
			f.t.Errorf("moved from %s: %s", queue, text(ms))
		}
	}
}

func keptAreCopies(f *fixture) {
	for n, queue := range hubQueues() {
		f.PutDeadLetter(queue, record(n, "moved"))
	}
	for _, ms := range f.moved() {
		f.must(f.p.AnnotateDeadLetter(f.ctx(), ms[0], errors.New("recovered")))
	}
	for _, queue := range hubQueues() {
		if rs := f.ReceiveDead(queue); len(rs) != 1 || rs[0].Body != "moved" {
			f.t.Errorf("dead letters of %s: %s, want only the copy", queue, text(rs))
		}
	}
	f.Advance(3 * time.Second)
	if ms := f.moved(); len(ms) > 0 {
		f.t.Errorf("returned again: %s", text(ms))
	}
}

func manyMoved(f *fixture) {
	const n = 33
	for i := range n {
		r := record(i, strconv.Itoa(i))
		r.Group = fmt.Sprint("g", i%7)
		f.PutDeadLetter(provider.QueueInbox, r)
		f.PutDeadLetter(Queue, r)
	}
	for range 3 { // a search may leave some records of a group to the next one
		f.Advance(2 * time.Minute)
		for _, queue := range []string{provider.QueueInbox, Queue} {
			for m, err := range f.p.DeadLetteredRecords(f.ctx()) {
				f.must(err)
				if m.Queue == queue {
					f.must(f.p.AnnotateDeadLetter(f.ctx(), m, errors.New("recovered")))
				}
			}
		}
	}
	f.Advance(2 * time.Minute)
	seen := map[string]int{}
	for rs := f.ReceiveDead(Queue); len(rs) > 0; rs = f.ReceiveDead(Queue) {
		for _, r := range rs {
			seen[r.Body]++
		}
	}
	if len(seen) != n {
		f.t.Errorf("%d dead letters, want %d", len(seen), n)
	}
}

func movedAgain(f *fixture) {
	f.PutDeadLetter(Queue, record(1, "moved"))
	first := f.moved()[Queue]
	f.Advance(5 * time.Minute)
	if again := f.moved()[Queue]; len(first) != 1 || len(again) != 1 {
		f.t.Errorf("moved records: %d, then %d; want 1 each time", len(first), len(again))
	}
}

func blockedWithout(f *fixture) {
	f.report("b1")
	e := f.start("a")
	e.commit(turnStarted(), activity(Queue))
	why := &history.Failure{Type: history.TypeCorrupt, Message: "segment 1"}
	f.must(f.p.BlockInstance(f.ctx(), "a", e.instance.ExecutionID, "b1", why))
	in := f.instance("a")
	if in.Status != provider.StatusBlocked {
		f.t.Errorf("status is %s", in.Status)
	}
	f.wantEqual("diagnosis", in.Diagnosis, why)
	f.wantBlocked()
	f.report("b2")
	f.wantBlocked("a")
	f.must(f.p.BlockInstance(f.ctx(), "a", e.instance.ExecutionID, "b2", nil))
	if in := f.instance("a"); in.Status != provider.StatusRunning || in.Diagnosis != nil {
		f.t.Errorf("status is %s: %+v", in.Status, in.Diagnosis)
	}
	f.wantBlocked()
	e.commit(completed(3), ended(`1`)) // its own turns still write the status
	f.wantStatus("a", provider.StatusCompleted)
}

func blockedOthers(f *fixture) {
	e := f.start("a")
	e.commit(turnStarted())
	why := &history.Failure{Type: history.TypeCorrupt, Message: "m"}
	f.must(f.p.BlockInstance(f.ctx(), "a", "another", "b1", why))
	f.must(f.p.BlockInstance(f.ctx(), "nobody", "x", "b1", why))
	f.wantStatus("a", provider.StatusRunning)
	_, err := f.p.ReadInstance(f.ctx(), "nobody")
	f.wantIs(err, provider.ErrNotFound)
}

func blockedOver(f *fixture) {
	e := f.start("a")
	e.commit(turnStarted(), ended(`1`))
	for _, why := range []*history.Failure{{Type: history.TypeCorrupt, Message: "m"}, nil} {
		f.must(f.p.BlockInstance(f.ctx(), "a", e.instance.ExecutionID, "b1", why))
		f.wantStatus("a", provider.StatusCompleted)
	}
}

// heldLater: one of two timers is cancelled while their messages are in the queue. The other one is found when it is
// due.
func heldLater(f *fixture) {
	e := f.quiet("a")
	due := f.now().Add(time.Hour)
	e.commit(turnStarted(), timer(due), timer(due))
	f.Advance(15 * time.Minute)
	held := f.timers()
	slices.SortFunc(held, func(a, b provider.LockedTimer) int { return int(a.TimerID - b.TimerID) })
	if len(held) != 2 {
		f.t.Fatalf("%d timers after 15 minutes", len(held))
	}
	e.commit(turnStarted(), history.Event{Kind: history.TimerCancelled, SourceEventID: 3, Reason: "requested", RequestedBy: history.RequestedByOrchestration})
	f.must(f.p.HoldTimers(f.ctx(), held[0].Timer, held[1].Timer))
	for f.Now().Before(due.Add(2 * time.Second)) {
		f.Advance(time.Second)
		for _, t := range f.timers() {
			if t.TimerID == 4 && !f.Now().Before(due.Add(-time.Second)) {
				return
			}
			f.must(f.p.HoldTimers(f.ctx(), t.Timer))
		}
	}
	f.t.Error("pending timer was not received")
}
