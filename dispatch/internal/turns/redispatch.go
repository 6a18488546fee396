package turns

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/provider"
)

// dispatched is the head up to which a session knows everything to be sent: it has sent it, or has repeated it.
type dispatched struct{ head provider.Head }

// isAll reports whether all that a view holds is sent.
func (d *dispatched) isAll(x *execution) bool { return x != nil && d.head == x.head }

func (d *dispatched) upTo(head provider.Head) { d.head = head }

// forget has the next look decide.
func (d *dispatched) forget() { d.head = provider.Head{} }

// redelivered finds the first message that a committed turn has consumed before, or else one that stands for the turn which no message
// leads to: the head's, where it took parked inputs alone (R4), or was taken over by a restart (R30).
func (s *session) redelivered() (provider.RedispatchFrom, bool) {
	if s.sent.isAll(s.x) {
		return provider.RedispatchFrom{}, false
	}
	waiting := s.backlog.waiting()
	if slices.ContainsFunc(waiting, isPickedUp) {
		return pickedUpSince(s.x, waiting), true
	}
	for i := range waiting {
		if s.x.head.Watermark.Covers(waiting[i].Position) {
			return provider.RedispatchFrom{Position: waiting[i].Position}, true
		}
	}
	// What is warm was sent before it was kept.
	return provider.RedispatchFrom{Position: s.x.head.Watermark}, s.x.read != nil && (s.x.trail.alone || s.x.state.RestartPending())
}

// pickedUpSince is since when something may not be sent where some of the messages that wait were picked up. They have a place of their own by now.
func pickedUpSince(x *execution, waiting []provider.InboxMessage) provider.RedispatchFrom {
	i := slices.IndexFunc(waiting, func(m provider.InboxMessage) bool { return isPickedUp(m) && m.Redrive.MovedAt == nil })
	if at := movedAt(waiting); !at.IsZero() {
		if i >= 0 && x.read != nil { // of that one it is all of this execution, and what ended the one before
			at = intake.Earlier(at, begunAt(x.read).Add(-1))
		}
		return provider.RedispatchFrom{HeadAt: at}
	}
	return provider.RedispatchFrom{Position: x.before(waiting[i].Position)}
}

// begunAt is when an execution began, by its history.
func begunAt(o *provider.Orchestration) (at time.Time) {
	if events := o.Segments[0].Events; len(events) > 0 {
		at = events[0].Time
	}
	return at
}

func isPickedUp(m provider.InboxMessage) bool { return m.Redrive != nil }

// movedAt is a time at which none of the messages that were picked up had come to the dead letters yet, zero where that is not known. A turn that
// has consumed one of them, and whose outputs were never sent, is the last by then, or comes later. However many executions have followed it meanwhile.
func movedAt(messages []provider.InboxMessage) (at time.Time) {
	for i := range messages {
		if p := messages[i].Redrive; p != nil && p.MovedAt != nil {
			at = intake.Earlier(at, p.MovedAt.Add(-clockSkew))
		}
	}
	return at
}

// redispatch finishes what an earlier invocation may have left unsent, before any turn (R4, I4).
func (s *session) redispatch(ctx context.Context, since provider.RedispatchFrom) (next, error) {
	if !s.x.verified || s.x.read == nil {
		return verify, nil
	}
	s.x.read.Retention = s.x.retention
	refused, err := s.o.provider.RedispatchOrchestration(ctx, s.x.read, since)
	if err != nil {
		return goOn, fmt.Errorf("dispatch: instance %q: redispatch: %w", s.item.InstanceID, err)
	}
	s.sent.upTo(s.x.head)
	s.backlog.refuse(refused...)
	s.backlog.consumeCovered(s.x.head.Watermark)
	s.consume(0)
	return goOn, nil
}

// before is the place of a message that a reconciliation has sent, or a release before this one has picked up from the dead letters: its number is
// new, and nothing shows the old one. A turn that has consumed it, and whose outputs were never sent, is taken to be of this execution, or to have
// ended the one before. In an execution that began with no message of this inbox it may be any turn.
func (x *execution) before(picked provider.Position) provider.Position {
	if x.read != nil {
		if first := x.read.Segments[0].Watermark; first.Inbox == picked.Inbox {
			return first
		}
	}
	return provider.Position{}
}

// isBehind reports whether some message was sent after the segment that this view ends with (R5).
func (x *execution) isBehind(messages []provider.InboxMessage) bool {
	for i := range messages {
		if messages[i].ExecutionID == x.head.ExecutionID && messages[i].Segment > x.head.Segment {
			return true
		}
	}
	return false
}
