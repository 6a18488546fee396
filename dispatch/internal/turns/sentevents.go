package turns

import (
	"context"
	"slices"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// answered is what the answer to events, or to an update, brings that this instance has sent to another.
func answered(m *provider.InboxMessage) (events []history.Event) {
	if m.Kind == provider.MessageUpdateAnswered {
		return []history.Event{{Kind: history.UpdateAnswered, SourceEventID: m.SourceEventID, InstanceID: m.ChildID, Result: m.Result, Error: m.Error}}
	}
	for _, r := range m.SourceEventIDs {
		for id := r.First; id <= r.Last; id++ {
			e := history.Event{Kind: history.ExternalEventDelivered, SourceEventID: id}
			if m.Error != nil {
				e.Kind, e.Error = history.ExternalEventUndelivered, m.Error
			}
			events = append(events, e)
		}
	}
	return events
}

// isAnswered reports whether a message is of another instance that is told where nobody takes it.
func isAnswered(m *provider.InboxMessage) bool {
	return isParentsCancel(m) || m.IsSent()
}

// isForeign reports whether a message is of another instance, and nobody here takes it, or brings an update that is over.
func isForeign(x *execution, m *provider.InboxMessage) bool {
	return m != nil && (isAnswered(m) || answeredBefore(x, m) != nil) && x.notForCode(*m)
}

// answer tells another instance that nobody takes its first message that waits.
func answer(ctx context.Context, s *session, first *provider.InboxMessage) error {
	switch {
	case startsAbsent(s, first):
		return startWithUpdate(ctx, s, first)
	case answeredBefore(s.x, first) != nil:
		return answerBefore(ctx, s, first)
	case first.IsSent():
		if err := waitsForDeletion(ctx, s, first); err != nil {
			return err
		}
		over := ""
		if s.x != nil && s.x.over() {
			over = s.x.head.ExecutionID
		}
		return refuseEvents(ctx, s, over)
	case s.absent:
		return s.pass(s.o.refuseCancel(ctx, first))
	default:
		return s.pass(s.o.answerCancel(ctx, s.x, first))
	}
}

// leaveUntaken has the end of an execution say which events and updates of other instances its messages have brought, and its code has not taken: the
// end is what answers them (R24, R31).
func leaveUntaken(end *history.Event, consumed ...provider.InboxMessage) {
	for i := range consumed {
		m := &consumed[i]
		if m.Kind == provider.MessageUpdateSent && end.Kind != history.OrchestrationContinuedAsNew && !slices.Contains(end.Callers, *m.Parent) {
			end.Callers = append(end.Callers, *m.Parent)
		}
		if m.Kind == provider.MessageEventSent {
			end.Inputs = append(end.Inputs, history.Event{Kind: history.ExternalEventRaised, Name: m.Name, EventID: m.EventID, Parent: m.Parent})
		}
	}
}

// clockSkew is by how much the clocks of two functions may differ.
const clockSkew = 5 * time.Minute

// lookForRefused looks, once for an execution, which events of other instances must not reach it: their senders were told that nobody was there, and
// the message, or a copy, has come all the same. An execution that had its first turn long before an event was sent was there.
func lookForRefused(ctx context.Context, s *session) error {
	if s.x.looked || s.x.over() {
		return nil
	}
	waiting := s.backlog.waiting()
	for i := range waiting {
		m := &waiting[i]
		if !m.IsSent() || m.SentAt != nil && hadTurn(s.x, m.SentAt.Add(-clockSkew)) {
			continue
		}
		refused, err := s.o.provider.ReadRejectedEvents(ctx, s.item.InstanceID)
		if err != nil {
			return err
		}
		s.x.refused, s.x.looked = refused, true
		return nil
	}
	return nil
}

// hadTurn reports whether a turn of an execution was before then. When it was started says less: that may have been prepared for a transaction
// of the client's, and committed much later.
func hadTurn(x *execution, at time.Time) bool {
	const firstTurn = 1
	return len(x.times) > firstTurn && x.times[firstTurn] < at.UnixMilli()
}

// findsNobody reports whether a message is of another instance and nobody takes it: it has no answer yet, and starts no instance.
func findsNobody(s *session, m *provider.InboxMessage) bool {
	return m.IsSent() && answeredBefore(s.x, m) == nil && !startsAbsent(s, m) && s.x.notForCode(*m)
}

// refuseEvents answers the events of other instances at the front that nobody takes: no instance is there, or it is over, by that execution, or
// they were refused before.
func refuseEvents(ctx context.Context, s *session, over string) error {
	var ms []*provider.InboxMessage
	waiting := s.backlog.waiting()
	for i := range waiting {
		startsNext := i > 0 && waiting[i].Orchestration != "" // by itself, once those before it are answered
		if startsNext || !findsNobody(s, &waiting[i]) {
			break
		}
		ms = append(ms, &waiting[i])
	}

	if err := s.o.provider.RejectEvents(ctx, over, ms...); err != nil {
		return err
	}
	s.o.options.Logger.InfoContext(ctx, "messages of another instance rejected: the receiver is not running",
		"event", logevent.MessageRejected, "instance", s.item.InstanceID, "events", len(ms),
		"from", ms[0].Parent.InstanceID, "fromExecution", ms[0].Parent.ExecutionID, "fromEventId", ms[0].Parent.EventID,
		"name", ms[0].Name, "over", over != "")
	s.consume(len(ms))
	return nil
}
