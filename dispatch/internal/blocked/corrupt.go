package blocked

import (
	"context"
	"errors"

	"github.com/perdure/perdure/dispatch/internal/messages"
	"github.com/perdure/perdure/dispatch/internal/poison"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// DeadLetterCorrupt blocks an instance whose history is unreadable, and copies its messages to the dead-letter queue,
// because no turn can process them. It does so if the messages were delivered too often, or if the instance is already
// blocked for this reason in this build, and reports whether it did. Otherwise each message would be retried, and an
// instance with many messages would block its message group. failed is the error of the session.
func (p *Policy) DeadLetterCorrupt(ctx context.Context, instanceID string, q *messages.Queue, failed error) bool {
	if !errors.Is(failed, provider.ErrCorrupt) {
		return false
	}
	if q.Deliveries() <= p.MaxCrashes && !p.isBlockedAsCorrupt(ctx, instanceID, q) {
		return false
	}
	if err := p.blockCorrupt(ctx, instanceID, q, failed); err != nil {
		p.Logger.ErrorContext(ctx, "blocking an instance with an unreadable history failed",
			"event", logevent.InstanceBlockFailed, "instance", instanceID, "error", err)
		return false
	}
	p.Logger.ErrorContext(ctx, "history unreadable, blocking the instance", "event", logevent.HistoryUnreadable,
		"instance", instanceID, "messages", len(q.Unacknowledged()), "error", failed)
	return true
}

// isBlockedAsCorrupt reports whether the instance of the messages has the status Blocked for this reason in this build.
func (p *Policy) isBlockedAsCorrupt(ctx context.Context, instanceID string, q *messages.Queue) bool {
	in, err := p.Provider.ReadInstance(ctx, instanceID)
	return err == nil && in.Status == provider.StatusBlocked && in.BlockedBy == p.BuildID && q.Deliveries() > 0 &&
		q.IsTriggeredFor(in.ExecutionID) && in.Diagnosis != nil && in.Diagnosis.Type == history.TypeCorrupt
}

func (p *Policy) blockCorrupt(ctx context.Context, instanceID string, q *messages.Queue, failed error) error {
	why := &history.Failure{Type: history.TypeCorrupt, Message: failed.Error()}
	in, err := p.Provider.ReadInstance(ctx, instanceID)
	if err == nil && q.IsTriggeredFor(in.ExecutionID) {
		err = p.Provider.BlockInstance(ctx, in.InstanceID, in.ExecutionID, p.BuildID, why)
	}
	if err != nil && !errors.Is(err, provider.ErrNotFound) {
		return err
	}
	return poison.DeadLetter(ctx, p.Base, q.Unacknowledged(), why)
}
