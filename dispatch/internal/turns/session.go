package turns

import (
	"context"
	"errors"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// session is one item's way through the protocol:
//
//	RECEIVED -> LOADED(warm | verified) -> RUN -> COMMITTED -> DISPATCHED -> ACKED
//	            RUN -> DROPPED (verified only) -> ACKED
//	            PAUSED: the inputs are committed as they are, or the order to pause or resume is -> COMMITTED
//	            RUN -> CONFLICT -> LOADED(verified);   any failure -> not acked, redelivered
type session struct {
	o    *Orchestrator
	item *provider.OrchestrationItem
	// backlog is what of the item is done with, and what waits.
	backlog backlog
	// x is the view of the instance that the session works on; nil: none is loaded.
	x    *execution
	sent dispatched
	// absent: there is no such instance, by a strongly consistent look.
	absent bool
	// inUse: the id of the instance is, though there is none that could be read, as while it is deleted.
	inUse bool
	// mostParked bounds how many of the parked inputs a turn takes, once more were too much for a commit; 0 does not.
	mostParked int
	// continued counts the executions that this invocation has begun by continue-as-new, chained the turns that were due since inline activities had
	// ended.
	continued, chained int32
	poison             poisonCheck
	attempts           attemptLedger
	// turnBegan is when the turn under way has, where that is measured.
	turnBegan time.Time
	// steps are the inline activities that run, inline their limits.
	steps  steps
	inline inlineLimits
	began  time.Time
	asked  asked
	// ahead is a turn that the code has run before the one before it is committed; nil: none.
	ahead *ahead
	// unshown: a turn has left the status to a later one.
	unshown bool
	// about is the execution that was worked on last, for the log.
	about string
	// result is what has become of the turn under way, for interceptors.
	result perdure.TurnResult
	// tasks are what the turn that was committed last has begun and ended; nil: nothing, or it was told.
	tasks *perdure.TurnTasks
	// commit is the turn that is being committed.
	commit provider.Turn
	// doubt is why the head is looked at, where the code has parted from a history that may be old.
	doubt doubt
}

// isThere notes that there is an instance, as far as is known.
func isThere(s *session) { s.absent = false }

func (o *Orchestrator) newSession(it *provider.OrchestrationItem, alone bool) *session {
	s := o.sessions.take()
	s.o, s.item, s.backlog.messages = o, it, it.Messages
	s.poison = poisonCheck{base: &o.base, most: o.options.MaxCrashes, around: o.interceptors, listeners: o.listeners, instanceID: it.InstanceID, alone: alone}
	return s
}

// lastExecution is the execution that a session was about last; empty where none was found.
func lastExecution(s *session) string {
	if s.x != nil {
		return s.x.head.ExecutionID
	}
	return s.about
}

// next is what follows a step.
type next int

const (
	// goOn: the next step follows from what is left.
	goOn next = iota
	// verify: what is to be done needs a strongly consistent look at the head first (R5).
	verify
	// takeFewer: the turn does not fit a commit, and fewer messages may. The coroutine has seen them all and must be revived.
	takeFewer
	// handOver: what is left is for another invocation, which a message is under way for.
	handOver
)

// conflictLimit ends an invocation that always comes second; its messages are delivered again.
const conflictLimit = 8

// run makes steps until nothing is left. On an error, what is not acked has to be delivered again.
func (s *session) run(ctx context.Context) error {
	if s.x = s.o.cache.take(s.item.InstanceID); s.x != nil {
		s.o.meter.Count(intake.MetricCacheHits, s.x.state.Name, 1)
	}
	s.inline, s.began = limitsOf(ctx, s.o), s.o.options.Clock()
	defer closeSteps(ctx, s)
	defer s.keepWarm()

	for conflicts := 0; s.unfinished(); {
		next, err := s.advance(ctx)
		switch {
		case errors.Is(err, provider.ErrConflict) && conflicts < conflictLimit:
			// Another session has committed in between, perhaps the very turn of a message that was passed or redispatched before, and perhaps
			// died before sending: only the head, read again, shows (R4).
			conflicts++
			s.discard()
			s.forget()
			_, err = s.load(ctx, provider.Strong)
		case err == nil && (next == verify || next == takeFewer):
			err = s.reload(ctx)
		case err == nil && next == handOver:
			s.discard()
			return s.backlog.handOver()
		}

		if errors.Is(err, provider.ErrCorrupt) {
			err = dealWithDamaged(ctx, s, err)
		}
		if err == nil {
			continue
		}
		s.discard()
		if !errors.Is(err, provider.ErrNotFound) {
			return err
		}
		s.absent = true
		s.drop(ctx, "no such instance")
	}
	return nil
}

// unfinished: there are messages to consume, outputs whose failure is to be recorded, an execution that has had no turn, or inline activities that run.
func (s *session) unfinished() bool {
	return s.backlog.first() != nil || len(s.backlog.refused) > 0 || s.x != nil && s.x.due || s.steps.any()
}

// advance makes one step: a start, a look, a dispatch that is repeated, an answer, or a turn.
func (s *session) advance(ctx context.Context) (next, error) {
	first := s.backlog.first()
	switch {
	case s.startsFirst():
		return goOn, s.start(ctx)
	case first != nil && first.IsRefresh():
		s.o.refresh(ctx, &first.Message)
		s.consume(1)
		return goOn, nil
	case s.absent && first != nil && isAnswered(first):
		return goOn, answer(ctx, s, first)
	case s.x == nil:
		return s.load(ctx, s.backlog.firstLook())
	case !s.x.verified && s.x.isBehind(s.backlog.waiting()):
		return verify, nil
	}
	if from, ok := s.redelivered(); ok {
		return s.redispatch(ctx, from)
	}
	return s.proceed(ctx)
}

// proceed deals with messages that no turn has consumed.
func (s *session) proceed(ctx context.Context) (next, error) {
	if err := errors.Join(lookForLives(ctx, s), lookForSent(ctx, s)); err != nil {
		return goOn, err
	}
	first := s.backlog.first()
	foreign := isForeign(s.x, first)
	switch {
	case (s.x.over() || foreign) && !s.x.verified:
		return verify, nil
	case foreign:
		return goOn, answer(ctx, s, first)
	case s.x.over():
		s.drop(ctx, "instance has ended")
		return goOn, nil
	case pauses(first):
		return pauseOrResume(ctx, s, first)
	}

	if next, err := s.retry(ctx); next != goOn || err != nil {
		return next, err
	}
	if err := own(ctx, s); err != nil {
		return telling(ctx, s, func(ctx context.Context, s *session) (next, error) { return blockUnowned(ctx, s, err) })
	}
	if s.x.broken != nil {
		switch n := s.attempts.whollyDealt(s.taken()); { // nothing of these is to be parked
		case n > 0 && !s.x.verified:
			return verify, nil
		case n > 0:
			s.consume(n)
			return goOn, nil
		}
	}
	return interceptedTurn(ctx, s)
}

// forget takes up again all that is not acked.
func (s *session) forget() {
	s.backlog.again()
	s.absent = false
	s.sent.forget()
	s.attempts.forgetView()
}

// reload reads the head anew. It may be another than the one that this session has seen, as after a conflict.
func (s *session) reload(ctx context.Context) error {
	seen := provider.Head{}
	if s.x != nil && s.x.verified {
		seen = s.x.head
	}
	unsent := s.steps.drop() // they are sent by a repeated dispatch
	s.discard()
	_, err := s.load(ctx, provider.Strong)
	s.doubt.report(ctx, s)
	s.doubt = doubt{}
	if err == nil && (unsent || seen != (provider.Head{}) && s.x.head != seen) {
		s.forget()
	}
	return err
}

func (s *session) load(ctx context.Context, c provider.Consistency) (next, error) {
	read, err := s.o.provider.ReadOrchestration(ctx, s.item, c)
	if errors.Is(err, provider.ErrNotFound) && c == provider.Eventual {
		return verify, nil
	}
	if err != nil {
		return goOn, err
	}
	return goOn, s.revive(ctx, read)
}

// revive rebuilds an execution, without its code when that is paused, poison, or known to be of no use in this build.
func (s *session) revive(ctx context.Context, read *provider.Orchestration) (err error) {
	state := read.State(history.TrackTimers)
	if state.Paused != nil {
		s.x, err = s.o.revive(ctx, read, state, errPaused)
		return err
	}
	if hopeless := s.o.hopeless(state); hopeless != nil {
		s.x, err = s.o.revive(ctx, read, state, hopeless)
		return err
	}
	err = s.poison.check(ctx, read.Head.ExecutionID, s.o.isBlockedAsPoison(&state.Summary), &s.backlog)
	if _, poison := errors.AsType[*poisonError](err); err != nil && !poison {
		return err
	}
	s.x, err = s.o.revive(ctx, read, state, err)
	return err
}

// taken are the messages of the next turn: up to one that is not for the code, or pauses it.
func (s *session) taken() []provider.InboxMessage { return s.backlog.next(turnEnd(s.x)) }

// consume passes over messages, and acknowledges all that are consumed, unless what they began has had no turn, or runs: they lead back to it.
func (s *session) consume(n int) {
	s.backlog.consume(n)
	if (s.x == nil || !s.x.due) && !s.steps.any() {
		s.backlog.acknowledge()
	}
}

// pass consumes the first message that waits, unless what it asks for has failed.
func (s *session) pass(failed error) error {
	if failed == nil {
		s.consume(1)
	}
	return failed
}

// drop gives up the messages of the next turn: its place was looked at, strongly consistent, in this invocation. What is behind them, or not for
// this instance, comes next.
func (s *session) drop(ctx context.Context, why string) {
	dropped := s.taken()
	for i := range dropped {
		s.o.options.Logger.DebugContext(ctx, "message dropped", "instance", s.item.InstanceID,
			"execution", dropped[i].ExecutionID, "kind", dropped[i].Kind, "why", why)
	}
	s.backlog.recorded()
	s.consume(len(dropped))
}

// discard unwinds coroutines whose commit is not confirmed (R6).
func (s *session) discard() {
	s.steps.drop()
	takeAhead(s)
	if s.x != nil {
		s.about = s.x.head.ExecutionID
		s.x.close()
		s.x = nil
	}
}

// keepWarm keeps the execution for its next turn; without code, where that is known to be of no use.
func (s *session) keepWarm() {
	if s.x == nil || s.x.over() || s.ahead != nil {
		return
	}
	if _, hopeless := errors.AsType[*hopelessError](s.x.broken); s.x.instance == nil && !hopeless && !isPaused(s.x) {
		return
	}
	s.x.rest()
	s.o.cache.put(s.item.InstanceID, s.x)
}
