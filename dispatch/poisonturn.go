package dispatch

import (
	"context"
	"errors"
	"fmt"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// PoisonError means that a turn of the instance has taken its process down again and again (R13).
type PoisonError struct {
	InstanceID string
	// Died is how many deliveries of the message that leads to the turn ended so, one after the other.
	Died int
}

func (e *PoisonError) Error() string {
	return fmt.Sprintf("instance %q: its turn was begun and not ended in %d deliveries: its code took the process down (out of memory, os.Exit, a fatal error), "+
		"or ran into the end of the invocation. The orchestrator's log tells how its processes ended; a build in which that is mended goes on by itself", e.InstanceID, e.Died)
}

// attempt is what a session knows of its delivery, once it was looked at.
type attempt struct {
	looked  bool
	mark    *provider.Attempt // nil: not marked
	verdict *PoisonError      // nil: the code may run
	copied  bool              // the records are in the dead letters
}

// watch leaves a mark before the instance's code runs, and be it to replay, where the message that leads to it was delivered
// before: a suspectError where others stand already and it is not alone, a PoisonError when too many do. In an instance that is blocked
// as poison already each message has one try, alone: more memory is no new build.
func (s *session) watch(ctx context.Context, executionID string, blocked bool) error {
	if s.attempt.looked {
		return s.attempt.err()
	}
	m := &s.item.Messages[min(s.acked, len(s.item.Messages)-1)]
	switch {
	case s.acked == len(s.item.Messages), !blocked && !doubtful(&m.Record, m.PickedUp):
		return nil
	case blocked && !s.alone:
		return &suspectError{died: s.o.options.MaxAttempts}
	}
	a := provider.Attempt{ExecutionID: executionID, Record: m.PickedUp.Of(m.Record), Together: !s.alone}
	died, err := mark(ctx, &s.o.options, a)
	if err != nil {
		return fmt.Errorf("dispatch: instance %q: mark of an attempt: %w", s.item.InstanceID, err)
	}
	poison := died > s.o.options.MaxAttempts || blocked && died > 0
	if !poison && !s.alone && died > 0 {
		return &suspectError{died: died}
	}
	if s.attempt.looked = true; s.alone || died == 0 {
		s.attempt.mark = &a
	}
	if poison {
		s.attempt.verdict = &PoisonError{InstanceID: s.item.InstanceID, Died: died}
	}
	return s.attempt.err()
}

// err is the verdict, if there is one.
func (a *attempt) err() error {
	if a.verdict == nil {
		return nil
	}
	return a.verdict
}

// unwatch takes the mark away: the process lives. It costs nothing where the messages are done with, unless the mark was made alone:
// should they not be deleted, the first one may stay, and no more. One that was found to be poison, and could not be dealt with, stays so.
func (s *session) unwatch(ctx context.Context, failed error) {
	a := &s.attempt
	if a.mark == nil || a.verdict != nil || failed == nil && a.mark.Together {
		return
	}
	if err := unmark(ctx, &s.o.options, *a.mark); err != nil {
		s.o.options.Logger.WarnContext(ctx, "the mark of a turn's attempt stays", "instance", s.item.InstanceID, "error", err)
	}
}

// revive rebuilds an execution, without its code when that is poison, or known to be of no use in this build.
func (s *session) revive(ctx context.Context, read *provider.Orchestration) (err error) {
	if hopeless := s.o.hopeless(read); hopeless != nil {
		s.x, err = s.o.revive(ctx, read, hopeless)
		return err
	}
	err = s.watch(ctx, read.Head.ExecutionID, s.o.isBlockedAsPoison(read.Last()))
	if _, poison := errors.AsType[*PoisonError](err); err != nil && !poison {
		return err
	}
	s.x, err = s.o.revive(ctx, read, err)
	return err
}

// isBlockedAsPoison reports whether a history ends blocked so, in this build.
func (o *Orchestrator) isBlockedAsPoison(last *history.Event) bool {
	return last.Kind == history.InputsParked && last.BuildID == o.options.BuildID && last.Error != nil && last.Error.Type == history.TypePoison
}

// keep copies the records of the messages of a turn that is not run to the dead letters, before history takes their inputs: the
// other way round a crash would leave none for people to see.
func (s *session) keep(ctx context.Context, why *history.Failure) error {
	if s.attempt.copied {
		return nil
	}
	kept := s.item.Messages[s.acked : len(s.item.Messages)-len(s.rest)+len(s.taken())] // from the one that leads to the turn: an earlier one may have taken it
	for i := range kept {
		if err := s.o.provider.DeadLetter(ctx, provider.QueueInbox, provider.Unreadable{Record: kept[i].Record, Err: &poisonError{why}}); err != nil {
			return fmt.Errorf("dispatch: instance %q: a poison message could not be put to the dead letters: %w", s.item.InstanceID, err)
		}
	}
	s.attempt.copied = true
	return nil
}

// giveUp deals with messages that were delivered too often to an instance whose history cannot be read: no turn can ever take
// them. The instance is shown as blocked, with what is wrong, and they go to the dead letters; else failed comes back. What comes to one that is
// shown so already, in this build, goes there at once: to try each anew would keep a busy one's group at work for nothing.
func (o *Orchestrator) giveUp(ctx context.Context, s *session, failed error) error {
	if !errors.Is(failed, provider.ErrCorrupt) || s.deliveries() <= o.options.MaxAttempts && !o.isBlockedAsCorrupt(ctx, s) {
		return failed
	}
	if err := o.blockCorrupt(ctx, s, failed); err != nil {
		o.options.Logger.ErrorContext(ctx, "an instance whose history cannot be read could not be given up", "instance", s.item.InstanceID, "error", err)
		return failed
	}
	o.options.Logger.ErrorContext(ctx, "the history cannot be read: the instance is blocked, and its messages go to the dead letters",
		"instance", s.item.InstanceID, "messages", len(s.item.Messages)-s.acked, "error", failed)
	s.acked = len(s.item.Messages)
	return nil
}

// isBlockedAsCorrupt reports whether the instance that the messages are for is shown as blocked so, in this build.
func (o *Orchestrator) isBlockedAsCorrupt(ctx context.Context, s *session) bool {
	in, err := o.provider.ReadInstance(ctx, s.item.InstanceID)
	return err == nil && in.Status == provider.StatusBlocked && in.BlockedBy == o.options.BuildID && s.deliveries() > 0 && s.isFor(in.ExecutionID) &&
		in.Diagnosis != nil && in.Diagnosis.Type == history.TypeCorrupt
}

func (o *Orchestrator) blockCorrupt(ctx context.Context, s *session, failed error) error {
	why := &history.Failure{Type: history.TypeCorrupt, Message: failed.Error()}
	in, err := o.provider.ReadInstance(ctx, s.item.InstanceID)
	if err == nil && s.isFor(in.ExecutionID) {
		err = o.provider.BlockInstance(ctx, in.InstanceID, in.ExecutionID, o.options.BuildID, why)
	}
	if err != nil && !errors.Is(err, provider.ErrNotFound) {
		return err
	}
	for i := s.acked; i < len(s.item.Messages); i++ {
		u := provider.Unreadable{Record: s.item.Messages[i].Record, Err: &poisonError{why}}
		if err := o.provider.DeadLetter(ctx, provider.QueueInbox, u); err != nil {
			return err
		}
	}
	return nil
}

// isFor reports whether the message that leads to the turn is for an execution, or for whichever is the current one. Another
// execution's history says nothing of the instance.
func (s *session) isFor(executionID string) bool {
	x := s.item.Messages[s.acked].ExecutionID
	return x == "" || x == executionID
}
