package turns

import (
	"context"
	"slices"

	"github.com/perdure/perdure/provider"
)

// isLedBy reports whether a message that a turn has consumed, and that is not acknowledged, leads here when it comes again (R4).
func (x *execution) isLedBy(inHand []provider.InboxMessage) bool {
	return slices.ContainsFunc(inHand, func(m provider.InboxMessage) bool { return x.head.Watermark.Covers(m.Position) })
}

// handOn gives the inputs of a message that concern the instance to the next execution, behind what was parked: the code had no chance to see them.
func (t *turn) handOn(m *provider.InboxMessage) {
	leaveUntaken(&t.out.Events[len(t.out.Events)-1], *m)
	if t.out.Continued == nil {
		return
	}
	for _, in := range t.s.x.inputsOf(nil, m, &t.s.attempts) {
		if !in.Kind.HasSource() { // what is for this execution's own tasks is over
			in.Time = t.out.Events[0].Time
			t.out.Continued.HandOn(in)
		}
	}
}

// successor is the execution that continues as new (R3). It asks for the version that was asked for at the start: where that
// was none, it moves on to the highest there is.
func (t *turn) successor() *provider.Successor {
	s, out := t.s, t.out
	start := s.x.start
	start.Time = out.Events[0].Time
	start.Number++
	start.StartAt = nil
	start.Input, start.CarriedEvents, start.EventIDs = out.Continued.Input, out.Continued.Events, out.Continued.EventIDs
	start.Inputs = out.Continued.Inputs
	start.TraceParent = out.Events[0].TraceParent

	next := &provider.Successor{ExecutionID: provider.NewExecutionID(s.o.options.Clock(), s.item.InstanceID, s.x.head.ExecutionID), Start: start}
	out.Events[len(out.Events)-1].ExecutionID = next.ExecutionID
	return next
}

// continueLimit bounds the executions that one invocation begins: code that does nothing but continue must not hold the
// function until it is killed.
const continueLimit = 100

// beginSuccessor goes on with the execution that the turn continued as: its first turn comes in this invocation, before anything is
// acknowledged (R3).
func (s *session) beginSuccessor(ctx context.Context, t *provider.Turn) (next, error) {
	read := &provider.Orchestration{
		InstanceID: t.InstanceID, Head: t.After(), Previous: t.Head.ExecutionID, Verified: true,
		Segments: []provider.Segment{t.Next.Segment(t.Watermark)},
	}
	before := s.x
	if err := s.revive(ctx, read); err != nil {
		return goOn, err
	}
	s.x.refused, s.x.looked = before.refused, before.looked
	if s.continued++; s.continued < continueLimit {
		return goOn, nil
	}
	if s.backlog.leadsBack() {
		return handOver, nil // they will be delivered again, and are as good as a wake
	}
	wake := provider.Message{Kind: provider.MessageWake, InstanceID: t.InstanceID, ExecutionID: t.Next.ExecutionID}
	if err := s.o.provider.EnqueueForOrchestrator(ctx, wake); err != nil {
		return goOn, err
	}
	s.x.idle()
	s.consume(0)
	return handOver, nil
}
