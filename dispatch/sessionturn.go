package dispatch

import (
	"context"
	"errors"
	"slices"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/provider"
)

// commit makes the turn durable and sends what it decided. Only then are its messages done.
func (s *session) commit(ctx context.Context, out replay.Outcome) error {
	consumed := max(out.Consumed-1, 0) // the first group was the refused outputs
	if out.Ended && out.Consumed == 0 && len(s.rest) > 0 && (out.Continued == nil || !s.isLedBy()) {
		consumed = 1 // a body that ended before any message was started by the first: it must be known as the trigger (R4)
		s.handOn(&out, &s.rest[0])
	}
	for consumed < len(s.rest) && isWake(s.rest[consumed]) {
		consumed++ // it brought what it could: a turn
	}
	t := s.newTurn(out.Events)
	t.LockedUntil = s.item.LockedUntil()
	if out.Continued != nil {
		t.Next = s.successor(&out)
	}
	if consumed > 0 {
		t.Watermark = s.rest[consumed-1].Position
	}
	refused, err := s.o.provider.AckOrchestrationItem(ctx, t)
	if errors.Is(err, provider.ErrTooLarge) {
		refused, consumed, err = s.tooLarge(ctx, t, consumed, err)
		out.Ended = true
	}
	if err != nil {
		return err
	}
	s.tellCancels(ctx, t)
	s.moved(t, refused, consumed)
	if out.Ended {
		s.x.over, s.refused = true, nil
		s.x.close()
	}
	if t.Next != nil {
		return s.succeed(ctx, t)
	}
	s.settle()
	return nil
}

// tooLarge deals with a turn that no commit can hold. Outcomes that came together, each of a legal size, may fit when fewer are
// taken (R2); what is too large by itself is replaced by an end that says why.
func (s *session) tooLarge(ctx context.Context, t *provider.Turn, consumed int, why error) ([]provider.OutputFailure, int, error) {
	if s.fewer(consumed) {
		return nil, 0, errTooMany
	}
	if s.x.read == nil {
		return nil, 0, errUnverified // what is outstanding stands in history alone
	}
	if consumed == 0 && len(s.rest) > 0 {
		consumed, t.Watermark = 1, s.rest[0].Position // what leads to an end has to lead back to it (R4)
	}
	end := history.Event{Kind: history.OrchestrationFailed, Error: &history.Failure{Type: history.TypePayloadTooLarge, Message: why.Error(), NonRetryable: true}}
	locked, watermark := t.LockedUntil, t.Watermark
	*t = *s.newTurn(s.events(append([]history.Event{t.Events[0]}, s.given(end)...)...))
	t.LockedUntil, t.Watermark = locked, watermark
	refused, err := s.o.provider.AckOrchestrationItem(ctx, t)
	return refused, consumed, err
}

// fewer bounds what a turn takes, first of what was parked and then of messages, if it has taken more than one.
func (s *session) fewer(consumed int) bool {
	switch {
	case s.x.parked.waiting > 0 && s.mostParked == 0:
		s.mostParked = max(s.x.parked.waiting/2, 1)
	case min(s.x.parked.waiting, s.mostParked) > 1:
		s.mostParked = min(s.x.parked.waiting, s.mostParked) / 2
	case consumed > 1 && s.most != 1: // wakes behind one message are consumed with it
		s.most = consumed / 2
	default:
		return false
	}
	return true
}

// errTooMany: the turn does not fit a commit. Fewer messages may; the coroutine has seen them all and must be revived.
var errTooMany = errors.New("dispatch: the turn took more messages than a commit can hold")

func (s *session) newTurn(events []history.Event) *provider.Turn {
	t := &provider.Turn{
		InstanceID: s.item.InstanceID, Head: s.x.head, Watermark: s.x.head.Watermark, Events: events, Parent: s.x.start.Parent,
		Unblocks: s.x.blocked.is, Cancelling: s.x.cancelling || provider.IsCancelling(events),
		CancelledTimers: s.x.timers.Cancelled(events), Retention: s.x.retention, CustomStatus: s.x.customAfter(events),
		Cancels: provider.CancelsOf(events),
	}
	_, t.CancelBlock = s.x.cancels.Add(t.Head.Segment+1, t.Cancels)
	return t
}

// moved: t is committed, and its messages are consumed.
func (s *session) moved(t *provider.Turn, refused []provider.OutputFailure, consumed int) {
	s.x.head, s.x.verified, s.x.due, s.x.read = t.After(), true, false, nil
	s.sent = s.x.head
	s.x.lastID, s.x.cancelling = t.Events[len(t.Events)-1].ID, t.Cancelling
	s.x.firsts = append(s.x.firsts, t.Events[0].ID)
	s.x.blocked.apply(t.Events)
	s.x.cancels, _ = s.x.cancels.Add(t.Head.Segment+1, t.Cancels)
	s.x.custom = t.CustomStatus
	s.x.timers.Apply(t.Events)
	s.x.activities.apply(t.Events)
	s.x.parked.apply(t.Events, consumed > 0)
	s.x.due = s.x.parked.due
	if t.Events[0].Parked > 0 {
		refused = append(s.refused, refused...) // the turn took parked inputs alone
	}
	s.refused, s.rest = refused, s.rest[consumed:]
}

// isLedBy reports whether a message that a turn has consumed, and that is not acknowledged, leads here when it comes again (R4).
func (s *session) isLedBy() bool {
	consumed := s.item.Messages[s.acked : len(s.item.Messages)-len(s.rest)]
	return slices.ContainsFunc(consumed, func(m provider.InboxMessage) bool { return s.x.head.Watermark.Covers(m.Position) })
}

// handOn gives what a message says about the instance to the next execution, behind what was parked: the code had no chance to see it.
func (s *session) handOn(out *replay.Outcome, m *provider.InboxMessage) {
	if out.Continued == nil {
		return
	}
	for _, in := range s.inputsOf(m) {
		if !in.Kind.Sourced() { // what is for this execution's own tasks is over
			in.Time = out.Events[0].Time
			out.Continued.Inputs = append(out.Continued.Inputs, in)
		}
	}
}

// successor is the execution that continues as new (R3). It asks for the version that was asked for at the start: where that
// was none, it moves on to the highest there is.
func (s *session) successor(out *replay.Outcome) *provider.Successor {
	now := s.o.options.Clock()
	start := s.x.start
	start.Time = out.Events[0].Time
	start.Number++
	start.StartAt = nil
	start.Input, start.CarriedEvents, start.EventIDs = out.Continued.Input, out.Continued.Events, out.Continued.EventIDs
	start.Inputs = out.Continued.Inputs
	next := &provider.Successor{ExecutionID: provider.NewExecutionID(now, s.item.InstanceID, s.x.head.ExecutionID), Start: start}
	out.Events[len(out.Events)-1].ExecutionID = next.ExecutionID
	return next
}

// continueLimit bounds the executions that one invocation begins: code that does nothing but continue must not hold the
// function until it is killed.
const continueLimit = 100

// succeed goes on with the execution that the turn continued as: its first turn comes in this invocation, before anything is
// acknowledged (R3).
func (s *session) succeed(ctx context.Context, t *provider.Turn) (err error) {
	read := &provider.Orchestration{
		InstanceID: t.InstanceID, Head: s.x.head, Previous: t.Head.ExecutionID, Verified: true,
		Segments: []provider.Segment{t.Next.Segment(t.Watermark)},
	}
	if err = s.revive(ctx, read); err != nil {
		return err
	}
	if s.continued++; s.continued < continueLimit {
		return nil
	}
	if slices.ContainsFunc(s.rest, func(m provider.InboxMessage) bool { return !m.IsRefresh() }) {
		return errContinuesOn // they will be delivered again, and are as good as a wake
	}
	wake := provider.Message{Kind: provider.MessageWake, InstanceID: t.InstanceID, ExecutionID: t.Next.ExecutionID}
	if err := s.o.provider.EnqueueForOrchestrator(ctx, wake); err != nil {
		return err
	}
	s.x.due = false
	s.settle()
	return errContinuesOn
}

// errContinuesOn: what is left is for another invocation, which a message is under way for.
var errContinuesOn = errors.New("dispatch: the orchestration continues as new without end: another invocation goes on")
