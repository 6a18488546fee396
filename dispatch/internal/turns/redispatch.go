package turns

import (
	"context"
	"fmt"
	"slices"

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
func (s *session) redelivered() (provider.Position, bool) {
	if s.sent.isAll(s.x) {
		return provider.Position{}, false
	}
	waiting := s.backlog.waiting()
	if i := slices.IndexFunc(waiting, func(m provider.InboxMessage) bool { return m.PickedUp != nil }); i >= 0 {
		return s.x.before(waiting[i].Position), true
	}
	for i := range waiting {
		if s.x.head.Watermark.Covers(waiting[i].Position) {
			return waiting[i].Position, true
		}
	}
	// What is warm was sent before it was kept.
	return s.x.head.Watermark, s.x.read != nil && (s.x.trail.alone || s.x.state.Restarted())
}

// redispatch finishes what an earlier invocation may have left unsent, before any turn (R4, I4).
func (s *session) redispatch(ctx context.Context, from provider.Position) (next, error) {
	if !s.x.verified || s.x.read == nil {
		return verify, nil
	}
	s.x.read.Retention = s.x.retention
	refused, err := s.o.provider.RedispatchOrchestration(ctx, s.x.read, from)
	if err != nil {
		return goOn, fmt.Errorf("dispatch: instance %q: redispatch: %w", s.item.InstanceID, err)
	}
	s.sent.upTo(s.x.head)
	s.backlog.refuse(refused...)
	s.backlog.consumeCovered(s.x.head.Watermark)
	s.consume(0)
	return goOn, nil
}

// before is the place of a message that was picked up from the dead letters, or that a reconciliation has sent: its number is new, and
// nothing shows the old one. A turn that has consumed it, and whose outputs were never sent, is of this execution or ended the one before.
// In an execution that began with no message of this inbox it may be any turn.
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
