package queues

import (
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// QueueSemantics tests the guarantees of an inbox and its queues. They are the order and isolation of instances, locks,
// and no lost messages.
func QueueSemantics() kit.Group {
	return kit.Group{Name: "queues", Cases: []kit.Case{
		{Name: "MessagesOfAnInstanceArriveInOrder", Run: orderInOneCall},
		{Name: "OrderIsKeptAcrossCalls", Run: orderAcrossCalls},
		{Name: "PositionsIncrease", Run: positionsGrow},
		{Name: "InstancesDoNotBlockEachOther", Run: isolation},
		{Name: "NextMessagesOfAnInstanceWaitForItsLock", Run: groupWaits},
		{Name: "MessagesArriveAsTheyWereSent", Run: messageFields},
		{Name: "SendDoesNotChangeTheMessage", Run: messageUntouched},
		{Name: "RepeatedOutcomeIsOneMessage", Run: repeatedOutcome},
		{Name: "AnotherAttemptIsAnotherMessage", Run: otherAttempts},
		{Name: "RepeatedTimerIsOneMessage", Run: repeatedTimer},
		{Name: "WakesAreNotDeduplicated", Run: wakesAreAllSent},
		{Name: "RecoveredMessageIsNotADuplicate", Run: recoveredIsSent},
		{Name: "LockExpires", Run: lockExpires, Visibility: 2 * time.Second},
		{Name: "ExpiredInstanceIsRedeliveredInOrder", Run: orderAfterExpiry, Visibility: 2 * time.Second},
		{Name: "DeletedRecordsAreNotRedelivered", Run: deletedAreNotRedelivered, Visibility: 2 * time.Second},
		{Name: "AbandonWithoutDelay", Run: abandonedAtOnce},
		{Name: "AbandonWithDelay", Run: abandonedWithDelay},
		{Name: "AbandonedInstanceIsRedeliveredInOrder", Run: abandonedGroup},
	}}
}

func outcome(id string, activityID int64, attempt int) provider.Message {
	return provider.Message{
		Kind: provider.MessageActivityOutcomes, InstanceID: id, ExecutionID: "x-" + id,
		Outcomes: []provider.ActivityOutcome{{ActivityID: activityID, Attempt: attempt, Result: history.Payload(`1`)}},
	}
}

// wantTimers fails if the messages are not n timers in order, starting with first.
func wantTimers(f *kit.Fixture, ms []provider.InboxMessage, first int64, n int) {
	f.T.Helper()
	if len(ms) != n {
		f.T.Fatalf("got %d messages, want %d", len(ms), n)
	}
	for i := range ms {
		if want := first + int64(i); ms[i].TimerID != want {
			f.T.Fatalf("message %d is of timer %d, want %d", i, ms[i].TimerID, want)
		}
	}
}

func orderInOneCall(f *kit.Fixture) {
	var ms []provider.Message
	for n := range int64(25) {
		ms = append(ms, kit.Fired("a", n+1))
	}
	f.Enqueue(ms...)
	wantTimers(f, f.Messages(), 1, 25)
}

func orderAcrossCalls(f *kit.Fixture) {
	for n := range int64(12) {
		f.Enqueue(kit.Fired("a", n+1))
	}
	wantTimers(f, f.Messages(), 1, 12)
}

func positionsGrow(f *kit.Fixture) {
	for n := range int64(12) {
		f.Enqueue(kit.Fired("a", n+1))
	}
	ms := f.Messages()
	for i := 1; i < len(ms); i++ {
		if before, here := ms[i-1].Position, ms[i].Position; !here.Covers(before) || before.Covers(here) ||
			!here.Covers(here) {
			f.T.Errorf("position %+v is not after %+v", here, before)
		}
	}
	if (provider.Position{}).Covers(ms[0].Position) {
		f.T.Error("zero position includes a message")
	}
}

func isolation(f *kit.Fixture) {
	f.Enqueue(kit.Fired("a", 1), kit.Fired("b", 1))
	got := map[string]int{}
	for range 2 { // one receive may return both
		for _, it := range f.Inbox() {
			got[it.InstanceID] += len(it.Messages)
		}
	}
	f.WantEqual("received", got, map[string]int{"a": 1, "b": 1})
	f.Enqueue(kit.Fired("a", 2), kit.Fired("c", 1))
	items := f.Inbox()
	if len(items) != 1 || items[0].InstanceID != "c" {
		f.T.Errorf("while a and b are locked: got %s", kit.Text(items))
	}
}

func groupWaits(f *kit.Fixture) {
	f.Enqueue(kit.Fired("a", 1))
	first := f.Inbox()
	f.Enqueue(kit.Fired("a", 2))
	if items := f.Inbox(); len(items) > 0 {
		f.T.Errorf("delivered while the instance is locked: got %s", kit.Text(items))
	}
	f.Must(f.Provider.DeleteRecords(f.Ctx(), provider.QueueInbox, first[0].Messages[0].Record))
	wantTimers(f, f.Messages(), 2, 1)
}

func messageFields(f *kit.Fixture) {
	due := f.StoredNow()
	sent := []provider.Message{
		{Kind: provider.MessageWake, InstanceID: "a", ExecutionID: "x"},
		{Kind: provider.MessageTimerFired, InstanceID: "a", ExecutionID: "x", Segment: 7, TimerID: 3, FireAt: &due},
		{
			Kind: provider.MessageActivityOutcomes, InstanceID: "a", ExecutionID: "x", Segment: 1 << 40,
			Outcomes: []provider.ActivityOutcome{
				{ActivityID: 4, Attempt: 2, Result: history.Payload(`{"b":[1,2.50,"x"],"a":null}`)},
				{
					ActivityID: 5, Attempt: 1,
					Error: &history.Failure{
						Type: "T", Message: "m\n\u2028", NonRetryable: true,
						Cause: &history.Failure{Type: "C", Message: "c"},
					},
				},
			},
		},
	}
	f.Enqueue(sent...)
	got := f.Messages()
	if len(got) != len(sent) {
		f.T.Fatalf("got %d messages, want %d", len(got), len(sent))
	}
	for i := range sent {
		sent[i].V = provider.WireVersion
		f.WantEqual("message", got[i].Message, sent[i])
		if r := got[i].Record; r.ID == "" || r.ReceiptHandle == "" || r.ReceiveCount != 1 {
			f.T.Errorf("got record %+v", r)
		}
	}
}

// messageUntouched checks that a send does not modify messages, because callers may share them.
func messageUntouched(f *kit.Fixture) {
	ms := []provider.Message{kit.Fired("a", 1)}
	f.Must(f.Provider.EnqueueForOrchestrator(f.Ctx(), ms...))
	f.WantEqual("message of the caller", ms[0], kit.Fired("a", 1))
}

func repeatedOutcome(f *kit.Fixture) {
	f.Enqueue(outcome("a", 3, 1))
	f.Enqueue(outcome("a", 3, 1))
	if ms := f.Messages(); len(ms) != 1 {
		f.T.Errorf("got %d messages, want 1", len(ms))
	}
	f.Enqueue(outcome("a", 3, 1)) // even if the first message was already consumed
	if ms := f.Messages(); len(ms) != 0 {
		f.T.Errorf("%d messages after the first was consumed, want none", len(ms))
	}
}

func otherAttempts(f *kit.Fixture) {
	f.Enqueue(outcome("a", 3, 1), outcome("a", 3, 2), outcome("a", 4, 1), outcome("b", 3, 1))
	if ms := f.Messages(); len(ms) != 4 {
		f.T.Errorf("got %d messages, want 4", len(ms))
	}
}

func repeatedTimer(f *kit.Fixture) {
	f.Enqueue(kit.Fired("a", 3), kit.Fired("a", 3), kit.Fired("a", 4), kit.Fired("b", 3))
	if ms := f.Messages(); len(ms) != 3 {
		f.T.Errorf("got %d messages, want 3", len(ms))
	}
}

// recoveredIsSent checks that a record from a dead-letter queue is sent each time it is recovered. Only a repeated call
// of the same recovery is a duplicate.
func recoveredIsSent(f *kit.Fixture) {
	m := outcome("a", 3, 1)
	f.Enqueue(m)
	f.Messages()
	for range 2 {
		m.Redrive = m.Redrive.Next("r")
		f.Enqueue(m)
		f.Enqueue(m)
		ms := f.Messages()
		if len(ms) != 1 {
			f.T.Fatalf("recovered %d times: %d messages, want 1", m.Redrive.Times, len(ms))
		}
		f.WantEqual("redrive state", ms[0].Redrive, m.Redrive)
	}
}

func wakesAreAllSent(f *kit.Fixture) {
	wake := provider.Message{Kind: provider.MessageWake, InstanceID: "a", ExecutionID: "x"}
	f.Enqueue(wake)
	f.Enqueue(wake)
	if ms := f.Messages(); len(ms) != 2 {
		f.T.Errorf("got %d messages, want 2", len(ms))
	}
}

func lockExpires(f *kit.Fixture) {
	f.StartWithoutWake("a").Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	first := f.Locked(kit.Queue)
	if len(first) != 1 || first[0].Record.ReceiveCount != 1 {
		f.T.Fatalf("received %s", kit.Text(first))
	}
	if again := f.Locked(kit.Queue); len(again) > 0 {
		f.T.Errorf("received while locked: got %s", kit.Text(again))
	}
	f.Advance(3 * time.Second)
	again := f.Locked(kit.Queue)
	if len(again) != 1 || again[0].Record.ReceiveCount != 2 || again[0].Record.ID != first[0].Record.ID {
		f.T.Errorf("after the lock: got %s", kit.Text(again))
	}
}

func orderAfterExpiry(f *kit.Fixture) {
	f.Enqueue(kit.Fired("a", 1), kit.Fired("a", 2), kit.Fired("a", 3))
	f.Inbox()
	f.Advance(3 * time.Second)
	wantTimers(f, f.Messages(), 1, 3)
}

func deletedAreNotRedelivered(f *kit.Fixture) {
	e := f.StartWithoutWake("a")
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue), kit.Timer(f.StoredNow()))
	f.Enqueue(kit.Fired("a", 1))
	for _, queue := range []string{kit.Queue, provider.QueueTimers, provider.QueueInbox} {
		if n := len(f.Drain(queue)); n != 1 {
			f.T.Errorf("got %d records in %s, want 1", n, queue)
		}
	}
	f.Advance(3 * time.Second)
	for _, queue := range []string{kit.Queue, provider.QueueTimers, provider.QueueInbox} {
		if rs := f.Receive(queue); len(rs) > 0 {
			f.T.Errorf("%s: %s was redelivered", queue, rs[0].Body)
		}
	}
}

func abandonedAtOnce(f *kit.Fixture) {
	f.StartWithoutWake("a").Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	f.Must(f.Provider.AbandonRecords(f.Ctx(), kit.Queue, 0, f.Receive(kit.Queue)...))
	if again := f.Locked(kit.Queue); len(again) != 1 || again[0].Record.ReceiveCount != 2 {
		f.T.Errorf("abandoned: got %s", kit.Text(again))
	}
}

func abandonedWithDelay(f *kit.Fixture) {
	f.StartWithoutWake("a").Commit(kit.TurnStarted(), kit.Activity(kit.Queue), kit.Activity(kit.Queue))
	f.Must(f.Provider.AbandonRecords(f.Ctx(), kit.Queue, 2*time.Second, f.Receive(kit.Queue)...))
	if early := f.Locked(kit.Queue); len(early) > 0 {
		f.T.Errorf("before the delay: got %s", kit.Text(early))
	}
	f.Advance(3 * time.Second)
	if again := f.Locked(kit.Queue); len(again) != 2 {
		f.T.Errorf("after the delay: got %s", kit.Text(again))
	}
}

func abandonedGroup(f *kit.Fixture) {
	f.Enqueue(kit.Fired("a", 1), kit.Fired("a", 2), kit.Fired("a", 3))
	var records []provider.Record
	for _, m := range f.Inbox()[0].Messages {
		records = append(records, m.Record)
	}
	f.Must(f.Provider.DeleteRecords(f.Ctx(), provider.QueueInbox, records[0]))
	f.Must(f.Provider.AbandonRecords(f.Ctx(), provider.QueueInbox, 0, records[1:]...))
	wantTimers(f, f.Messages(), 2, 2)
}
