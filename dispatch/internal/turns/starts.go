package turns

import (
	"context"
	"errors"

	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// startsFirst: the next message asks for the instance to be made, and was not delivered before. One that was is, most likely,
// consumed: the head shows it (R4).
func (s *session) startsFirst() bool {
	m := s.backlog.first()
	switch {
	case m == nil || m.Kind != provider.MessageStart:
		return false
	case m.Redrive != nil && !s.absent && !s.sent.isAll(s.x):
		return false
	case s.x == nil:
		return s.absent || m.Record.ReceiveCount <= 1
	default:
		return !s.x.head.Watermark.Covers(m.Position)
	}
}

// start makes the instance. When its id is in use, the asker is sent a refusal (R10).
func (s *session) start(ctx context.Context) error {
	m := s.backlog.first()
	if err := ownInput(ctx, s, m); err != nil {
		return err
	}
	read, err := s.o.provider.CreateOrchestration(ctx, m)
	switch {
	case errors.Is(err, provider.ErrAlreadyExists):
		if err := s.o.provider.RejectStart(ctx, m); err != nil {
			return err
		}
		s.o.options.Logger.WarnContext(ctx, "start refused: instance ID in use", "event", logevent.StartRefused,
			"instance", m.InstanceID, "startId", m.StartID)
	case err != nil:
		return err
	default:
		s.discard()
		if err = s.revive(ctx, read); err != nil {
			return err
		}
	}
	isThere(s)
	s.sent.forget() // what is there may have consumed what comes behind, and more
	if err == nil && hasHadTurns(s.x) && s.x.head.Watermark.Covers(m.Position) {
		return nil // a turn that this very message has led to may not be sent, and nothing else leads back to it: it is a redelivery now (R4)
	}
	s.consume(1)
	return nil
}

// hasHadTurns reports whether an execution is more than a start.
func hasHadTurns(x *execution) bool {
	return x.head.Segment > 0 || x.read != nil && x.read.Previous != ""
}
