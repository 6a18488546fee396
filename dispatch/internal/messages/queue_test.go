package messages

import (
	"testing"

	"github.com/perdure/perdure/provider"
)

// queueOf returns a queue of messages with sequence numbers, of an inbox.
func queueOf(numbers ...string) Queue {
	all := make([]provider.InboxMessage, len(numbers))
	for i, n := range numbers {
		all[i].Position = provider.Position{Inbox: "q", Sequence: n}
		all[i].Record.ID = n
	}
	return NewQueue(all)
}

func never(provider.InboxMessage) bool { return false }

func TestQueue_outputsAreRejected_acknowledgesNothingUntilTheyAreRecorded(t *testing.T) {
	t.Parallel()
	q := queueOf("1", "2")
	q.Consume(1)
	q.Refuse(provider.OutputFailure{EventID: 3})
	q.Acknowledge()
	if n := len(q.Unacknowledged()); n != 2 {
		t.Errorf("%d messages are unacknowledged, want 2", n)
	}
	q.ClearRefused()
	q.Acknowledge()
	if n := len(q.Unacknowledged()); n != 1 {
		t.Errorf("%d messages are unacknowledged, want 1", n)
	}
}

func TestQueue_reset_keepsWhatIsAcknowledged(t *testing.T) {
	t.Parallel()
	q := queueOf("1", "2", "3")
	q.Consume(1)
	q.Acknowledge()
	q.Consume(1)
	q.Reset()
	if first := q.First(); first == nil || first.Record.ID != "2" || len(q.Pending()) != 0 {
		t.Errorf("the first waiting message is %v, %d are pending", first, len(q.Pending()))
	}
}

func TestQueue_consumeRedelivered_stopsAtTheWatermark(t *testing.T) {
	t.Parallel()
	q := queueOf("1", "2", "3")
	q.ConsumeCovered(provider.Position{Inbox: "q", Sequence: "2"})
	if n := len(q.Waiting()); n != 1 {
		t.Errorf("%d messages wait, want 1", n)
	}
}

func TestQueue_halve_limitsTheNextTurnToHalf(t *testing.T) {
	t.Parallel()
	q := queueOf("1", "2", "3", "4")
	for _, want := range []int{2, 1} {
		if taken := len(q.Next(never)); !q.Halve(taken) {
			t.Fatalf("a turn of %d messages cannot be smaller", taken)
		}
		if n := len(q.Next(never)); n != want {
			t.Errorf("the next turn takes %d messages, want %d", n, want)
		}
	}
	if q.Halve(1) {
		t.Error("a turn of one message can be smaller")
	}
}

func TestQueue_nextTurn_endsBeforeAMessageThatEndsIt(t *testing.T) {
	t.Parallel()
	q := queueOf("1", "2", "3")
	next := q.Next(func(m provider.InboxMessage) bool { return m.Record.ID == "2" })
	if len(next) != 1 || next[0].Record.ID != "1" {
		t.Errorf("the next turn takes %d messages", len(next))
	}
}

func TestQueue_trigger_isTheOldestUnacknowledged(t *testing.T) {
	t.Parallel()
	q := queueOf("1", "2")
	q.Consume(2)
	if id := q.Trigger().Record.ID; id != "1" {
		t.Errorf("the trigger is %s", id)
	}
	q.AcknowledgeAll()
	if id := q.Trigger().Record.ID; id != "2" || q.Deliveries() != 0 {
		t.Errorf("the trigger is %s, deliveries %d", id, q.Deliveries())
	}
}
