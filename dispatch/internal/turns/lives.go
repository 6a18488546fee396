package turns

import (
	"context"
	"errors"
	"fmt"

	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// anotherLife is the start of a message that was for an instance which had the id before. No start has this name.
const anotherLife = "(purged)"

// lookForLives looks which of the messages that wait were picked up from the dead letters, and had come there before the last life of the id was purged:
// they were for that life, and what a client asked of it is not for this one. It costs a read where such a message is older than the execution.
func lookForLives(ctx context.Context, s *session) error {
	waiting := s.backlog.waiting()
	for i := range waiting {
		m := &waiting[i]
		if !isOfSomeLife(m) || s.x.start.Time.Before(*m.Redrive.MovedAt) {
			continue
		}
		switch in, err := s.o.provider.ReadInstance(ctx, s.item.InstanceID); {
		case errors.Is(err, provider.ErrNotFound): // the commit says so
			return nil
		case err != nil:
			return fmt.Errorf("dispatch: instance %q: check the incarnation of a recovered message: %w",
				s.item.InstanceID, err)
		case m.Redrive.MovedAt.Before(in.PurgedAt):
			m.StartID = anotherLife
			s.o.options.Logger.WarnContext(ctx, "recovered dead letter dropped: its instance was purged",
				"event", logevent.DeadLetterDropped, "instance", s.item.InstanceID, "kind", m.Kind,
				"movedAt", *m.Redrive.MovedAt)
		}
	}
	return nil
}

// isOfSomeLife reports whether a message was picked up that does not say which life of its instance it is for.
func isOfSomeLife(m *provider.InboxMessage) bool {
	if m.Redrive == nil || m.Redrive.MovedAt == nil || m.ExecutionID != "" || m.StartID != "" {
		return false
	}
	switch m.Kind {
	case provider.MessageEventRaised, provider.MessageTerminate, provider.MessageCancel, provider.MessageCancelActivity,
		provider.MessageExecutionSuspended, provider.MessageExecutionResumed:
		return true
	default: // a wake is anybody's, and what another instance has sent is answered (R24, R31)
		return false
	}
}
