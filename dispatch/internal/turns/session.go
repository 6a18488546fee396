package turns

import (
	"context"
	"errors"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/blocked"
	"github.com/perdure/perdure/dispatch/internal/execution"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/dispatch/internal/messages"
	"github.com/perdure/perdure/dispatch/internal/observe"
	"github.com/perdure/perdure/dispatch/internal/poison"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/provider"
)

// session processes the messages of an instance in an invocation. It is a state machine (states.go).
type session struct {
	instance

	state state
	// turn is the turn in progress.
	turn     turn
	observed observe.Turns
	// conflicts counts the conflicts with other sessions.
	conflicts int
	// mismatch is a reason for which the head is verified.
	mismatch blocked.Mismatch
	// failure is the error of an unreadable history.
	failure error
}

// newSession returns the session of an item. alone is set if no other code runs in the process at the same time.
func (o *Orchestrator) newSession(it *provider.OrchestrationItem, alone bool) *session {
	s := o.sessions.get()
	s.o, s.item, s.queue = o, it, messages.NewQueue(it.Messages)
	s.poison = poison.NewCheck(o.poison, it.InstanceID, alone)
	s.observed = observe.NewTurns(o.observer)
	return s
}

// maxConflicts is the number of conflicts after which an invocation ends. Its messages are redelivered.
const maxConflicts = 8

// run moves the session through its states until all messages are processed. After an error, the messages that are not
// acknowledged have to be redelivered.
func (s *session) run(ctx context.Context) error {
	if s.x = s.o.cache.Take(s.item.InstanceID); s.x != nil {
		s.o.meter.Count(intake.MetricCacheHits, s.x.State().Name, 1)
	}
	s.chain = newChain(s.o.Clock)
	s.inline.Start(ctx, s.o.inline, s.item, &s.queue, s.poison.Alone())
	defer s.inline.Close(ctx)
	defer func() {
		if s.turn.ahead == nil {
			s.keepWarm()
		}
	}()

	for s.state != done {
		var err error
		if s.state.isTurn() {
			err = s.runTurn(ctx)
		} else {
			err = s.step(ctx)
		}
		if err == nil {
			continue
		}
		if err = s.recoverFrom(err); err != nil {
			s.discard()
			return err
		}
	}
	return s.queue.Yield()
}

// recoverFrom makes the transition that follows an error. It returns the error if the session has to end.
func (s *session) recoverFrom(err error) error {
	next := done
	switch {
	case errors.Is(err, provider.ErrConflict) && s.conflicts < maxConflicts && s.state != corrupted:
		s.conflicts++
		next = conflicted
	case errors.Is(err, provider.ErrCorrupt) && s.state != corrupted:
		s.failure = err
		next = corrupted
	case errors.Is(err, provider.ErrNotFound):
		s.discard()
		s.absent = true
		next, _ = s.turn.drop("no such instance")
	}
	if !recoveries.has(next) {
		return err
	}
	s.state = next
	return nil
}

// runTurn runs the states of a turn inside the interceptors. A poison turn runs without interceptors, because an
// interceptor may crash the process, and the instance could never be blocked. A session that parks messages because the
// instance is paused or an encoding failed does not run a turn.
func (s *session) runTurn(ctx context.Context) error {
	t := &s.turn
	if t.unencoded || errors.Is(t.obstacle, execution.ErrPaused) {
		return s.turnSteps(ctx)
	}
	if trace := s.x.Start().TraceParent; trace != "" {
		ctx = perdure.WithTraceParent(ctx, string(trace))
	}
	if _, poisoned := errors.AsType[*poison.Error](t.obstacle); poisoned {
		err := s.turnSteps(ctx)
		s.observed.DiscardTasks()
		return err
	}
	if !s.o.observer.Intercepts() {
		return s.turnSteps(ctx)
	}
	return s.observed.Run(ctx, s.x, s.item.InstanceID, t.taken, s.turnSteps)
}

// turnSteps runs the states of a turn, and then reports its tasks.
func (s *session) turnSteps(ctx context.Context) (err error) {
	for err == nil && s.state.isTurn() {
		err = s.step(ctx)
	}
	if _, poisoned := errors.AsType[*poison.Error](s.turn.obstacle); !poisoned {
		s.observed.ReportTasks(ctx)
	}
	return err
}

// commitEvents commits a turn with events that were not caused by code.
func (s *session) commitEvents(ctx context.Context, t *provider.Turn, consumed int) error {
	refused, err := s.o.Provider.AckOrchestrationItem(ctx, t)
	if err != nil {
		return s.commitError(ctx, err, t, nil)
	}
	s.afterCommit(ctx, t, refused, consumed, nil)
	return nil
}

// commitError returns the error of a commit. If the turn is committed and only its dispatch is incomplete, commitError
// records the turn, because a redispatch does not report it.
func (s *session) commitError(ctx context.Context, err error, t *provider.Turn, waits []replay.WaitEnd) error {
	if errors.Is(err, provider.ErrDispatchIncomplete) {
		s.x.Commit(t, true)
		s.observed.Committed(ctx, s.x, t, waits)
	}
	return err
}

// afterCommit applies a committed turn that has consumed messages.
func (s *session) afterCommit(
	ctx context.Context, t *provider.Turn, refused []provider.OutputFailure, consumed int, waits []replay.WaitEnd,
) {
	s.statusPending = t.StatusWrite == provider.StatusWriteDeferred && (s.statusPending || t.Changes())
	s.x.Commit(t, consumed > 0)
	s.observed.Committed(ctx, s.x, t, waits)
	s.dispatched = s.x.Head()

	if t.Events[0].ParkedConsumed == 0 { // otherwise the turn took only parked inputs
		s.queue.ClearRefused()
	}
	s.queue.Refuse(refused...)
	s.queue.Consume(consumed)
	if s.x.Ended() || t.Next != nil {
		s.queue.ClearRefused()
		s.inline.Drop()
		s.x.Close()
		return
	}
	if s.x.State().InlineOutcomes > 0 && s.x.Code.Loaded() && s.turn.ahead == nil {
		s.x.Code.Arrive(outcomesAtEnd(t.Events))
	}
	s.inline.Committed(t)
}

// discard ends the coroutines of the execution and its inline activities, because no commit confirms them (R6).
func (s *session) discard() {
	s.turn.takeAhead()
	s.unload()
}
