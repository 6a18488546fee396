package turns

import (
	"context"
	"errors"

	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// handleCorrupt handles an instance whose history is unreadable. A termination takes effect even if other messages wait
// before it, because it needs no code. An ended instance receives none of the waiting messages, and other instances
// receive a response.
func (s *session) handleCorrupt(ctx context.Context) (state, error) {
	s.discard()
	if m := s.termination(); m != nil {
		if err := s.read(ctx, provider.Strong); !errors.Is(err, provider.ErrCorrupt) {
			return receiving, err // only the earlier read was damaged, or this one has failed
		}
		if err := s.o.Provider.TerminateCorrupt(ctx, m); err != nil {
			return done, err
		}
		s.o.Logger.WarnContext(ctx, "instance with an unreadable history terminated",
			"event", logevent.InstanceTerminatedUnreadable, "instance", s.item.InstanceID, "error", s.failure)
	}
	in, err := s.o.Provider.ReadInstance(ctx, s.item.InstanceID)
	if err != nil || !in.Status.Terminal() {
		return done, s.failure
	}

	switch first := s.queue.First(); {
	case first == nil:
		return done, s.failure
	case first.IsSent():
		r := s.receiver()
		n, err := s.o.mailbox.Reject(ctx, &r, in.ExecutionID, s.queue.Waiting())
		if err != nil {
			return done, err
		}
		s.queue.Consume(n)
		return acknowledging, nil
	case s.x.BypassesCode(*first):
		return done, s.failure
	default:
		return s.turn.drop("instance has ended")
	}
}
