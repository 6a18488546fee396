package turns

import (
	"errors"
	"slices"

	"github.com/perdure/perdure/provider"
)

// backlog is the messages of an item, in their order: first those that are acknowledged, then those that a turn has consumed, then those that wait.
// Only its own methods change it.
type backlog struct {
	messages []provider.InboxMessage
	// acked counts those that are done with: all they caused is sent, or recorded as failed (I3).
	acked int
	// consumed counts those that no turn is to consume any more.
	consumed int
	// refused are outputs that can never be sent: the next turn records their failure (R9).
	refused []provider.OutputFailure
	// most bounds how many messages a turn takes, once a larger one was too large for a commit; 0 does not.
	most int
}

// waiting are the messages that no turn has consumed.
func (b *backlog) waiting() []provider.InboxMessage { return b.messages[b.consumed:] }

// first returns the message that waits for longest; nil where none does.
func (b *backlog) first() *provider.InboxMessage {
	if b.consumed == len(b.messages) {
		return nil
	}
	return &b.messages[b.consumed]
}

// unacknowledged are the messages that are not done with.
func (b *backlog) unacknowledged() []provider.InboxMessage { return b.messages[b.acked:] }

// leads returns the message that leads to the next turn: an earlier turn may have consumed it.
func (b *backlog) leads() *provider.InboxMessage {
	return &b.messages[min(b.acked, len(b.messages)-1)]
}

// deliveries is how often the first message that is not done with has been delivered; 0 where all are.
func (b *backlog) deliveries() int {
	if b.acked == len(b.messages) {
		return 0
	}
	return b.messages[b.acked].Record.ReceiveCount
}

// next are the messages of the next turn: as many as a commit may hold, up to one that is not for the code.
func (b *backlog) next(notForCode func(provider.InboxMessage) bool) []provider.InboxMessage {
	next := b.waiting()
	if i := slices.IndexFunc(next, notForCode); i >= 0 {
		next = next[:i]
	}
	if b.most > 0 && b.most < len(next) {
		next = next[:b.most]
	}
	return next
}

// consume passes over the first n messages that wait.
func (b *backlog) consume(n int) { b.consumed += n }

// consumeCovered passes over the messages that a committed turn has consumed.
func (b *backlog) consumeCovered(watermark provider.Position) {
	for m := b.first(); m != nil && watermark.Covers(m.Position); m = b.first() {
		b.consumed++
	}
}

// refuse keeps outputs that can never be sent, for the next turn.
func (b *backlog) refuse(failures ...provider.OutputFailure) {
	b.refused = append(b.refused, failures...)
}

// recorded forgets the refused outputs: a turn has them, or nothing is left to record them.
func (b *backlog) recorded() { b.refused = nil }

// acknowledge counts as done what is consumed, unless outputs of it were refused and wait to be recorded.
func (b *backlog) acknowledge() {
	if len(b.refused) == 0 {
		b.acked = b.consumed
	}
}

// acknowledgeAll counts all as done.
func (b *backlog) acknowledgeAll() { b.acked, b.consumed = len(b.messages), len(b.messages) }

// again takes up all that is not acknowledged.
func (b *backlog) again() { b.consumed, b.refused = b.acked, nil }

// inHand are the messages that a turn has consumed, and that are not done with.
func (b *backlog) inHand() []provider.InboxMessage { return b.messages[b.acked:b.consumed] }

// takeFewer bounds the next turns to half of what one has taken; false where that was one message already.
func (b *backlog) takeFewer(taken int) bool {
	if taken <= 1 || b.most == 1 { // wakes behind one message are consumed with it
		return false
	}
	b.most = taken / 2
	return true
}

// firstLook is how to look at the head first: cheap where a commit will check it (R8); for messages that were delivered before that would be
// wasted.
func (b *backlog) firstLook() provider.Consistency {
	again := func(m provider.InboxMessage) bool { return m.Record.ReceiveCount > 1 }
	if slices.ContainsFunc(b.waiting(), again) {
		return provider.Strong
	}
	return provider.Eventual
}

// leadsBack reports whether messages wait that bring another invocation here.
func (b *backlog) leadsBack() bool {
	return slices.ContainsFunc(b.waiting(), func(m provider.InboxMessage) bool { return !m.IsRefresh() })
}

// handOver ends an invocation where another goes on: with an error while messages wait, so that they are delivered again.
func (b *backlog) handOver() error {
	if b.first() == nil {
		return nil
	}
	return errors.New("dispatch: orchestration keeps continuing as new; another invocation continues it")
}
