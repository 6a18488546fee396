package providertest

import (
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// The guarantees of an inbox and its queues: order and isolation of instances, locks, and no lost messages.
func queueSemantics() group {
	return group{"queues", []testCase{
		{name: "MessagesOfAnInstanceComeInOrder", run: orderInOneCall},
		{name: "OrderHoldsAcrossCalls", run: orderAcrossCalls},
		{name: "PositionsGrow", run: positionsGrow},
		{name: "InstancesDoNotHinderEachOther", run: isolation},
		{name: "AnInstancesNextMessagesWaitForItsLock", run: groupWaits},
		{name: "MessagesArriveAsTheyWereSent", run: messageFields},
		{name: "SendingLeavesTheMessageAsItWas", run: messageUntouched},
		{name: "ARepeatedOutcomeIsOneMessage", run: repeatedOutcome},
		{name: "AnotherAttemptIsAnotherMessage", run: otherAttempts},
		{name: "ARepeatedTimerIsOneMessage", run: repeatedTimer},
		{name: "WakesAreNotTakenForRepeats", run: wakesAreAllSent},
		{name: "WhatIsPickedUpIsNoRepeatOfWhatItWas", run: pickedUpIsSent},
		{name: "ALockExpires", run: lockExpires, visibility: 2 * time.Second},
		{name: "AnExpiredInstanceComesBackInOrder", run: orderAfterExpiry, visibility: 2 * time.Second},
		{name: "DeletedRecordsDoNotComeBack", run: deletedStayAway, visibility: 2 * time.Second},
		{name: "AbandonedAtOnce", run: abandonedAtOnce},
		{name: "AbandonedWithDelay", run: abandonedWithDelay},
		{name: "AnAbandonedInstanceComesBackInOrder", run: abandonedGroup},
	}}
}

func fired(id string, timerID int64) provider.Message {
	return provider.Message{Kind: provider.MessageTimerFired, InstanceID: id, ExecutionID: "x-" + id, TimerID: timerID}
}

func outcome(id string, activityID int64, attempt int) provider.Message {
	return provider.Message{
		Kind: provider.MessageActivityOutcomes, InstanceID: id, ExecutionID: "x-" + id,
		Outcomes: []provider.ActivityOutcome{{ActivityID: activityID, Attempt: attempt, Result: history.Payload(`1`)}},
	}
}

func (f *fixture) enqueue(ms ...provider.Message) {
	f.t.Helper()
	f.must(f.p.EnqueueForOrchestrator(f.ctx(), ms...))
}

// wantTimers fails unless the messages are n timers in order, starting with first.
func (f *fixture) wantTimers(ms []provider.InboxMessage, first int64, n int) {
	f.t.Helper()
	if len(ms) != n {
		f.t.Fatalf("%d messages, want %d", len(ms), n)
	}
	for i := range ms {
		if want := first + int64(i); ms[i].TimerID != want {
			f.t.Fatalf("message %d is of timer %d, want %d", i, ms[i].TimerID, want)
		}
	}
}

func orderInOneCall(f *fixture) {
	var ms []provider.Message
	for n := range int64(25) {
		ms = append(ms, fired("a", n+1))
	}
	f.enqueue(ms...)
	f.wantTimers(f.messages(), 1, 25)
}

func orderAcrossCalls(f *fixture) {
	for n := range int64(12) {
		f.enqueue(fired("a", n+1))
	}
	f.wantTimers(f.messages(), 1, 12)
}

func positionsGrow(f *fixture) {
	for n := range int64(12) {
		f.enqueue(fired("a", n+1))
	}
	ms := f.messages()
	for i := 1; i < len(ms); i++ {
		if before, here := ms[i-1].Position, ms[i].Position; !here.Covers(before) || before.Covers(here) || !here.Covers(here) {
			f.t.Errorf("position %+v is not after %+v", here, before)
		}
	}
	if (provider.Position{}).Covers(ms[0].Position) {
		f.t.Error("zero position includes a message")
	}
}

func isolation(f *fixture) {
	f.enqueue(fired("a", 1), fired("b", 1))
	got := map[string]int{}
	for range 2 { // one receive may return both
		for _, it := range f.inbox() {
			got[it.InstanceID] += len(it.Messages)
		}
	}
	f.wantEqual("received", got, map[string]int{"a": 1, "b": 1})
	f.enqueue(fired("a", 2), fired("c", 1))
	items := f.inbox()
	if len(items) != 1 || items[0].InstanceID != "c" {
		f.t.Errorf("while a and b are locked: %s", text(items))
	}
}

func groupWaits(f *fixture) {
	f.enqueue(fired("a", 1))
	first := f.inbox()
	f.enqueue(fired("a", 2))
	if items := f.inbox(); len(items) > 0 {
		f.t.Errorf("delivered while the instance is locked: %s", text(items))
	}
	f.must(f.p.DeleteRecords(f.ctx(), provider.QueueInbox, first[0].Messages[0].Record))
	f.wantTimers(f.messages(), 2, 1)
}

func messageFields(f *fixture) {
	due := f.now()
	sent := []provider.Message{
		{Kind: provider.MessageWake, InstanceID: "a", ExecutionID: "x"},
		{Kind: provider.MessageTimerFired, InstanceID: "a", ExecutionID: "x", Segment: 7, TimerID: 3, FireAt: &due},
		{Kind: provider.MessageActivityOutcomes, InstanceID: "a", ExecutionID: "x", Segment: 1 << 40, Outcomes: []provider.ActivityOutcome{
			{ActivityID: 4, Attempt: 2, Result: history.Payload(`{"b":[1,2.50,"x"],"a":null}`)},
			{ActivityID: 5, Attempt: 1, Error: &history.Failure{Type: "T", Message: "m\n\u2028", NonRetryable: true, Cause: &history.Failure{Type: "C", Message: "c"}}},
		}},
	}
	f.enqueue(sent...)
	got := f.messages()
	if len(got) != len(sent) {
		f.t.Fatalf("%d messages, want %d", len(got), len(sent))
	}
	for i := range sent {
		sent[i].V = provider.WireVersion
		f.wantEqual("message", got[i].Message, sent[i])
		if r := got[i].Record; r.ID == "" || r.ReceiptHandle == "" || r.ReceiveCount != 1 {
			f.t.Errorf("record %+v", r)
		}
	}
}

// Callers may share messages.
func messageUntouched(f *fixture) {
	ms := []provider.Message{fired("a", 1)}
	f.must(f.p.EnqueueForOrchestrator(f.ctx(), ms...))
	f.wantEqual("message of the caller", ms[0], fired("a", 1))
}

func repeatedOutcome(f *fixture) {
	f.enqueue(outcome("a", 3, 1))
	f.enqueue(outcome("a", 3, 1))
	if ms := f.messages(); len(ms) != 1 {
		f.t.Errorf("%d messages, want 1", len(ms))
	}
	f.enqueue(outcome("a", 3, 1)) // also if the first one was consumed already
	if ms := f.messages(); len(ms) != 0 {
		f.t.Errorf("%d messages after the first was consumed, want none", len(ms))
	}
}

func otherAttempts(f *fixture) {
	f.enqueue(outcome("a", 3, 1), outcome("a", 3, 2), outcome("a", 4, 1), outcome("b", 3, 1))
	if ms := f.messages(); len(ms) != 4 {
		f.t.Errorf("%d messages, want 4", len(ms))
	}
}

func repeatedTimer(f *fixture) {
	f.enqueue(fired("a", 3), fired("a", 3), fired("a", 4), fired("b", 3))
	if ms := f.messages(); len(ms) != 3 {
		f.t.Errorf("%d messages, want 3", len(ms))
	}
}

// pickedUpIsSent: a record from a dead-letter queue is sent immediately, and each time it is recovered. Only a
// repetition of the same recovery is a duplicate.
func pickedUpIsSent(f *fixture) {
	m := outcome("a", 3, 1)
	f.enqueue(m)
	f.messages()
	for range 2 {
		m.Redrive = m.Redrive.Next("r")
		f.enqueue(m)
		f.enqueue(m)
		ms := f.messages()
		if len(ms) != 1 {
			f.t.Fatalf("recovered %d times: %d messages, want 1", m.Redrive.Times, len(ms))
		}
		f.wantEqual("picked up", ms[0].Redrive, m.Redrive)
	}
}

func wakesAreAllSent(f *fixture) {
	wake := provider.Message{Kind: provider.MessageWake, InstanceID: "a", ExecutionID: "x"}
	f.enqueue(wake)
	f.enqueue(wake)
	if ms := f.messages(); len(ms) != 2 {
		f.t.Errorf("%d messages, want 2", len(ms))
	}
}

func lockExpires(f *fixture) {
	f.quiet("a").commit(turnStarted(), activity(Queue))
	first := f.locked(Queue)
	if len(first) != 1 || first[0].Record.ReceiveCount != 1 {
		f.t.Fatalf("received %s", text(first))
	}
	if again := f.locked(Queue); len(again) > 0 {
		f.t.Errorf("received while locked: %s", text(again))
	}
	f.Advance(3 * time.Second)
	again := f.locked(Queue)
	if len(again) != 1 || again[0].Record.ReceiveCount != 2 || again[0].Record.ID != first[0].Record.ID {
		f.t.Errorf("after the lock: %s", text(again))
	}
}

func orderAfterExpiry(f *fixture) {
	f.enqueue(fired("a", 1), fired("a", 2), fired("a", 3))
	f.inbox()
	f.Advance(3 * time.Second)
	f.wantTimers(f.messages(), 1, 3)
}

func deletedStayAway(f *fixture) {
	e := f.quiet("a")
	e.commit(turnStarted(), activity(Queue), timer(f.now()))
	f.enqueue(fired("a", 1))
	for _, queue := range []string{Queue, provider.QueueTimers, provider.QueueInbox} {
		if n := len(f.drain(queue)); n != 1 {
			f.t.Errorf("%d records in %s, want 1", n, queue)
		}
	}
	f.Advance(3 * time.Second)
	for _, queue := range []string{Queue, provider.QueueTimers, provider.QueueInbox} {
		if rs := f.Receive(queue); len(rs) > 0 {
			f.t.Errorf("%s: %s was redelivered", queue, rs[0].Body)
		}
	}
}

func abandonedAtOnce(f *fixture) {
	f.quiet("a").commit(turnStarted(), activity(Queue))
	f.must(f.p.AbandonRecords(f.ctx(), Queue, 0, f.Receive(Queue)...))
	if again := f.locked(Queue); len(again) != 1 || again[0].Record.ReceiveCount != 2 {
		f.t.Errorf("abandoned: %s", text(again))
	}
}

func abandonedWithDelay(f *fixture) {
	f.quiet("a").commit(turnStarted(), activity(Queue), activity(Queue))
	f.must(f.p.AbandonRecords(f.ctx(), Queue, 2*time.Second, f.Receive(Queue)...))
	if early := f.locked(Queue); len(early) > 0 {
		f.t.Errorf("before the delay: %s", text(early))
	}
	f.Advance(3 * time.Second)
	if again := f.locked(Queue); len(again) != 2 {
		f.t.Errorf("after the delay: %s", text(again))
	}
}

func abandonedGroup(f *fixture) {
	f.enqueue(fired("a", 1), fired("a", 2), fired("a", 3))
	var records []provider.Record
	for _, m := range f.inbox()[0].Messages {
		records = append(records, m.Record)
	}
	f.must(f.p.DeleteRecords(f.ctx(), provider.QueueInbox, records[0]))
	f.must(f.p.AbandonRecords(f.ctx(), provider.QueueInbox, 0, records[1:]...))
	f.wantTimers(f.messages(), 2, 2)
}
