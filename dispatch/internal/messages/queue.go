// Package messages holds the inbox messages of an instance that a session processes, and translates them into inputs of
// the execution's history.
package messages

import (
	"errors"
	"slices"

	"github.com/perdure/perdure/provider"
)

// Queue contains the messages of a session in order: acknowledged messages, consumed messages, and waiting messages.
type Queue struct {
	messages []provider.InboxMessage
	// acknowledged is the number of messages whose outputs are sent, or recorded as failed (I3).
	acknowledged int
	// consumed is the number of messages that turns have consumed. It includes the acknowledged messages.
	consumed int
	// refused are outputs that can never be sent. The next turn records their failure (R9).
	refused []provider.OutputFailure
	// limit is the maximum number of messages that a turn takes, after a turn was too large for a commit. 0 means no
	// limit.
	limit int
}

// NewQueue returns a queue of waiting messages.
func NewQueue(messages []provider.InboxMessage) Queue { return Queue{messages: messages} }

// Waiting returns the messages that no turn has consumed.
func (q *Queue) Waiting() []provider.InboxMessage { return q.messages[q.consumed:] }

// First returns the first waiting message, or nil.
func (q *Queue) First() *provider.InboxMessage {
	if q.consumed == len(q.messages) {
		return nil
	}
	return &q.messages[q.consumed]
}

// Unacknowledged returns the messages that are not acknowledged.
func (q *Queue) Unacknowledged() []provider.InboxMessage { return q.messages[q.acknowledged:] }

// Pending returns the messages that a turn has consumed and that are not acknowledged.
func (q *Queue) Pending() []provider.InboxMessage { return q.messages[q.acknowledged:q.consumed] }

// Trigger returns the oldest unacknowledged message, or the last one if all are acknowledged.
func (q *Queue) Trigger() *provider.InboxMessage {
	return &q.messages[min(q.acknowledged, len(q.messages)-1)]
}

// Deliveries returns the number of deliveries of the oldest unacknowledged message, or 0 if all are acknowledged.
func (q *Queue) Deliveries() int {
	if q.acknowledged == len(q.messages) {
		return 0
	}
	return q.messages[q.acknowledged].Record.ReceiveCount
}

// Next returns the messages of the next turn: up to the limit, and up to the first message that ends the turn.
func (q *Queue) Next(endsTurn func(provider.InboxMessage) bool) []provider.InboxMessage {
	next := q.Waiting()
	if i := slices.IndexFunc(next, endsTurn); i >= 0 {
		next = next[:i]
	}
	if q.limit > 0 && q.limit < len(next) {
		next = next[:q.limit]
	}
	return next
}

// Consume marks the first n waiting messages as consumed.
func (q *Queue) Consume(n int) { q.consumed += n }

// ConsumeCovered marks the waiting messages that a committed turn has consumed.
func (q *Queue) ConsumeCovered(watermark provider.Position) {
	for m := q.First(); m != nil && watermark.Covers(m.Position); m = q.First() {
		q.consumed++
	}
}

// Refuse stores outputs that can never be sent, for the next turn.
func (q *Queue) Refuse(failures ...provider.OutputFailure) {
	q.refused = append(q.refused, failures...)
}

// Refused returns the outputs that can never be sent and are not recorded.
func (q *Queue) Refused() []provider.OutputFailure { return q.refused }

// ClearRefused removes the refused outputs after a turn has recorded them, or if no turn will record them.
func (q *Queue) ClearRefused() { q.refused = nil }

// Acknowledge acknowledges the consumed messages, unless refused outputs wait to be recorded.
func (q *Queue) Acknowledge() {
	if len(q.refused) == 0 {
		q.acknowledged = q.consumed
	}
}

// AcknowledgeAll acknowledges all messages.
func (q *Queue) AcknowledgeAll() { q.acknowledged, q.consumed = len(q.messages), len(q.messages) }

// Reset marks all unacknowledged messages as unconsumed.
func (q *Queue) Reset() { q.consumed, q.refused = q.acknowledged, nil }

// Halve limits the next turns to half of the messages that a turn has taken. It returns false if the turn took one
// message.
func (q *Queue) Halve(taken int) bool {
	if taken <= 1 || q.limit == 1 { // wakes behind one message are consumed with it
		return false
	}
	q.limit = taken / 2
	return true
}

// FirstRead returns the consistency of the first read of the head. An eventually consistent read is sufficient if a
// commit checks it (R8). If a message was delivered before, there may be nothing to commit.
func (q *Queue) FirstRead() provider.Consistency {
	redelivered := func(m provider.InboxMessage) bool { return m.Record.ReceiveCount > 1 }
	if slices.ContainsFunc(q.Waiting(), redelivered) {
		return provider.Strong
	}
	return provider.Eventual
}

// WillContinue reports whether waiting messages cause another invocation to continue the instance.
func (q *Queue) WillContinue() bool {
	return slices.ContainsFunc(q.Waiting(), func(m provider.InboxMessage) bool { return !m.IsRefresh() })
}

// Yield returns an error if messages wait, so that they are redelivered and another invocation continues the instance.
func (q *Queue) Yield() error {
	if q.First() == nil {
		return nil
	}
	return errors.New("dispatch: orchestration keeps continuing as new; another invocation continues it")
}

// IsTriggeredFor reports whether the trigger is for an execution, or for the current execution of the instance. The
// history of another execution does not show the state of the instance.
func (q *Queue) IsTriggeredFor(executionID string) bool {
	x := q.Trigger().ExecutionID
	return x == "" || x == executionID
}

// MarkPurged marks the i-th waiting message as sent to an earlier incarnation of the instance.
func (q *Queue) MarkPurged(i int) { q.messages[q.consumed+i].StartID = purgedStart }

// purgedStart is a start ID that no start has.
const purgedStart = "(purged)"

// IsWake reports whether the only effect of a message is the turn that it causes.
func IsWake(m provider.InboxMessage) bool { return m.Kind == provider.MessageWake && !m.IsRefresh() }
