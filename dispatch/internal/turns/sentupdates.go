package turns

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/payloads"
	"github.com/perdure/perdure/provider"
)

// SQS takes no copy of a message in the five minutes after it has taken that: what it has taken sooner than this after the turn that sent it is no
// copy (R31), unless its clock differs by more than a minute from the function's.
const mayBeCopy = 5*time.Minute - time.Minute

// doubtful reports whether an update of another instance may be a copy of one that was taken long ago.
func doubtful(o *Orchestrator, m *provider.InboxMessage) bool {
	return m.SentAt == nil || takenAt(o, m).Sub(*m.SentAt) > mayBeCopy || m.Redrive != nil
}

// isNamed reports whether an update has an id that its sender has chosen: it may join one that was over long ago.
func isNamed(m *provider.InboxMessage) bool {
	return m.EventID != provider.StartID(m.Parent.ExecutionID, m.Parent.EventID)
}

// mayBeOver reports whether a message brings an update that may be over, though the execution does not know its id.
func mayBeOver(s *session, m *provider.InboxMessage) bool {
	switch m.Kind {
	case provider.MessageUpdateSent:
		return s.x.over() || isNamed(m) || doubtful(s.o, m)
	case provider.MessageUpdate: // an instance that is over takes none, and an execution knows those that it has taken itself
		return !s.x.over() && s.x.start.Number > 1 && (m.CustomUpdateID || m.Redrive != nil)
	default:
		return false
	}
}

// toldBefore is what an orchestration is told of an update that is not for the code.
type toldBefore struct {
	result history.Payload
	why    *history.Failure // it has none; nil where it has
}

// answeredBefore is the answer to a message that brings an update, where lookForAnswered has found one; else nil.
func answeredBefore(x *execution, m *provider.InboxMessage) *toldBefore {
	if x == nil || m.Kind != provider.MessageUpdateSent && m.Kind != provider.MessageUpdate {
		return nil
	}
	return x.answered[m.EventID]
}

// lookForSent looks what is known of the messages that other instances have sent and that wait.
func lookForSent(ctx context.Context, s *session) error {
	if err := lookForRefused(ctx, s); err != nil {
		return err
	}
	return lookForAnswered(ctx, s)
}

// lookForAnswered looks which updates that wait have an answer: an execution before this one has taken them, which knows the last ids alone, or a life of
// the instance before this one may have, or this one is over. It costs a read of each that may be a copy, or has a chosen id, or that comes too late.
func lookForAnswered(ctx context.Context, s *session) error {
	if s.x.over() && !s.x.verified {
		return nil
	}
	waiting := s.backlog.waiting()
	for i := range waiting {
		m := &waiting[i]
		if !mayBeOver(s, m) {
			continue
		}
		if _, looked := s.x.answered[m.EventID]; looked {
			continue
		}
		a, err := lookForAnswer(ctx, s, m)
		if err != nil {
			return err
		}
		if s.x.answered == nil {
			s.x.answered = map[string]*toldBefore{}
		}
		s.x.answered[m.EventID] = a
	}
	return nil
}

// lookForAnswer returns the answer to an update that this life of the instance has taken, or that a life before may have; nil where there is none.
func lookForAnswer(ctx context.Context, s *session, m *provider.InboxMessage) (*toldBefore, error) {
	if s.x.over() || s.x.start.Number > 1 {
		a, err := s.o.provider.ReadUpdate(ctx, s.item.InstanceID, m.EventID)
		switch {
		case err == nil && a.StartID == s.x.start.StartID:
			return &toldBefore{a.Result, a.Failure()}, nil
		case err != nil && !errors.Is(err, provider.ErrNotFound):
			return nil, err
		}
	}
	if m.SentAt == nil || !doubtful(s.o, m) {
		return nil, nil //nolint:nilnil // there is none
	}

	sent := m.SentAt.Add(-clockSkew)
	if s.x.start.Time.Before(sent) {
		return nil, nil //nolint:nilnil // it was sent to this life
	}
	in, err := s.o.provider.ReadInstance(ctx, s.item.InstanceID)
	switch {
	case errors.Is(err, provider.ErrNotFound), err == nil && !sent.Before(in.PurgedAt):
		return nil, nil //nolint:nilnil // there was no life before, or it was over and gone when this was sent
	case err != nil:
		return nil, err
	default:
		return &toldBefore{why: provider.PurgedFailure(s.item.InstanceID)}, nil
	}
}

// answerBefore answers a copy of an update that an execution before this one has taken, or a life before it may have. A client finds the answer.
func answerBefore(ctx context.Context, s *session, m *provider.InboxMessage) error {
	if m.Kind == provider.MessageUpdate {
		return s.pass(nil)
	}
	a := answeredBefore(s.x, m)
	return s.pass(s.o.provider.EnqueueForOrchestrator(ctx, provider.UpdateReply(m.InstanceID, *m.Parent, m.TraceParent, a.result, a.why)))
}

// tellAgain answers the orchestrations that have sent updates which are over: as the answer says that every other asker gets.
func tellAgain(ctx context.Context, s *session, callers map[string][]history.Parent) error {
	var told []provider.Message
	for id, of := range callers {
		a, err := s.o.provider.ReadUpdate(ctx, s.item.InstanceID, id)
		if err != nil {
			return fmt.Errorf("dispatch: instance %q: read the result of repeated update %q: %w", s.item.InstanceID,
				id, err)
		}
		for _, c := range of {
			told = append(told, provider.UpdateReply(s.item.InstanceID, c, "", a.Result, a.Failure()))
		}
	}
	if len(told) == 0 {
		return nil
	}
	return s.o.provider.EnqueueForOrchestrator(ctx, told...)
}

// turnAway answers orchestrations that would wait for an update which is under way, and that are too many. History has nothing of them: their messages are
// not acknowledged before they are answered.
func turnAway(ctx context.Context, s *session, callers []history.Parent) (next, error) {
	if len(callers) == 0 {
		return goOn, nil
	}
	if !s.x.verified {
		return verify, nil
	}
	told := make([]provider.Message, 0, len(callers))
	for _, c := range callers {
		told = append(told, provider.UpdateReply(s.item.InstanceID, c, "", nil, provider.TooManyWaitersFailure(s.item.InstanceID)))
	}
	return goOn, s.o.provider.EnqueueForOrchestrator(ctx, told...)
}

// startsAbsent reports whether an update is to start the instance that is not there.
func startsAbsent(s *session, m *provider.InboxMessage) bool {
	return s.absent && m.Kind == provider.MessageUpdateSent && m.Orchestration != ""
}

// errInUse is the error of an update for an id that is in use by what cannot take it: it comes again.
var errInUse = errors.New("dispatch: instance ID is in use by an instance that is being deleted; the update waits")

// waitsForDeletion returns an error for an update that would start the instance, where the one that is over is being deleted: the next is its own.
func waitsForDeletion(ctx context.Context, s *session, m *provider.InboxMessage) error {
	if m.Orchestration == "" || s.x == nil || !s.x.over() {
		return nil
	}
	in, err := s.o.provider.ReadInstance(ctx, m.InstanceID)
	switch {
	case errors.Is(err, provider.ErrNotFound), err == nil && in.Status == provider.StatusDeleting:
		return fmt.Errorf("instance %q: %w", m.InstanceID, errInUse)
	default:
		return err
	}
}

// startWithUpdate makes the instance that an update is for, with the update as the first that it takes: one commit has both, and the message leads
// back to it (R31). Where another has made it by now, that takes the update as any.
func startWithUpdate(ctx context.Context, s *session, m *provider.InboxMessage) error {
	if s.inUse {
		return fmt.Errorf("instance %q: %w", m.InstanceID, errInUse)
	}
	start, err := startOf(ctx, s, m)
	if err != nil {
		return err
	}
	read, err := s.o.provider.CreateOrchestration(ctx, start)
	switch {
	case errors.Is(err, provider.ErrPurged):
		return s.pass(s.o.provider.EnqueueForOrchestrator(ctx, provider.DeliveryReplies(provider.PurgedFailure(m.InstanceID), m)...))
	case errors.Is(err, provider.ErrAlreadyExists):
		s.inUse = true
		isThere(s)
		return nil
	case err != nil:
		return err
	}
	s.discard()
	if err = s.revive(ctx, read); err != nil {
		return err
	}
	isThere(s)
	s.sent.forget() // what is there may have consumed what comes behind, and more
	s.consume(1)
	return nil
}

// startOf is the start that an update asks for. Its id derives from the sender, so that a copy is the same start; what it brings is the execution's own.
func startOf(ctx context.Context, s *session, m *provider.InboxMessage) (*provider.InboxMessage, error) {
	startID := provider.StartID(m.Parent.ExecutionID, m.Parent.EventID)
	start := &provider.InboxMessage{
		Message: provider.Message{
			Kind: provider.MessageStart, InstanceID: m.InstanceID, Name: m.Orchestration, Version: m.Version, Input: m.Input, StartID: startID,
			Detached: true, TraceParent: m.TraceParent,
		},
		Position: m.Position, Record: m.Record,
	}
	if doubtful(s.o, m) && m.SentAt != nil {
		start.PossibleDuplicateSentAt = m.SentAt.Add(-clockSkew)
	}

	data := dataOf(&m.Message)
	if s.o.encoding != nil || provider.IsMessagePayloadKey(data.StorageKey()) || provider.IsMessagePayloadKey(m.Input.StorageKey()) {
		start.NewExecutionID = begunBy(s.o, m, startID)
		about := perdure.PayloadInfo{InstanceID: m.InstanceID, ExecutionID: start.NewExecutionID, Kind: perdure.PayloadUpdateInput, Name: m.Name}
		arrived := []payloads.MessagePayload{{About: about, Payload: &data}}
		if len(start.Input) > 0 {
			about.Kind, about.Name = perdure.PayloadOrchestrationInput, m.Orchestration
			arrived = append(arrived, payloads.MessagePayload{About: about, Payload: &start.Input})
		}
		if err := s.o.encoding.EncodeReceived(ctx, arrived); err != nil {
			return nil, err
		}
	}
	start.InitialInputs = m.Inputs(data)
	return start, nil
}
