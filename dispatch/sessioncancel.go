package dispatch

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

func isParentsCancel(m *provider.InboxMessage) bool {
	return m.Kind == provider.MessageCancel && m.Parent != nil
}

// apart tells messages that are not for the instance's code: what starts it, and a parent's cancel of an instance that is over,
// or is another than the one with this id.
func (s *session) apart(m provider.InboxMessage) bool {
	return m.Kind == provider.MessageStart || m.IsRefresh() || isParentsCancel(&m) && (s.x == nil || s.x.over || m.StartID != s.x.start.StartID)
}

// refuseCancel: the child that a parent cancels is not there. It may never begin any more (R16).
func (s *session) refuseCancel(ctx context.Context) error {
	if err := s.o.provider.RefuseCancel(ctx, &s.rest[0]); err != nil {
		return err
	}
	s.rest = s.rest[1:]
	s.settle()
	return nil
}

// answerCancel tells a parent that its child cannot be cancelled.
func (s *session) answerCancel(ctx context.Context) error {
	m := &s.rest[0]
	answer := provider.ChildOutcome(m.InstanceID, m.Parent)
	answer.Kind = provider.MessageCancelChildOutcome
	answer.Error = &history.Failure{Type: history.TypeNotFound, Message: fmt.Sprintf("instance %q is of another start", m.InstanceID)}
	if m.StartID == s.x.start.StartID {
		answer.Error = &history.Failure{Type: history.TypeOver, Message: fmt.Sprintf("instance %q is over", m.InstanceID)}
	}
	if err := s.o.provider.EnqueueForOrchestrator(ctx, answer); err != nil {
		return err
	}
	s.rest = s.rest[1:]
	s.settle()
	return nil
}
