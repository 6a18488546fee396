package turns

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/faults"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// Inline activities run in the invocation that decides them, between the turn and its commit (R20). The code runs until it waits; what it has
// scheduled inline is run, side by side, until an outcome is there that the code would go on with; then the decisions and the outcomes are
// committed as one segment. The code sees the outcomes in the next turn, which is due. What runs for too long, or does not begin in time, is sent
// to its queue by the commit, as any activity is.

// inlineLimits is what bounds the steps of an invocation.
type inlineLimits struct {
	// each is how long a step may take; 0: none is to run inline.
	each time.Duration
	// end is when all are to be over, so that there is time for the commit. Zero: no end is known.
	end time.Time
}

const (
	// inlineShare: a step has at most a third of what an invocation has, so that a commit, and another step, have time behind it.
	inlineShare = 3
	// commitReserve is what is kept of an invocation for the commit behind the last step, or a quarter of it, where that is less.
	commitReserve = time.Second
	// heldEvents is up to how many events a turn has for steps to run on through its commit. What a larger one sends may have a cursor, which
	// says of all events up to one that they are sent.
	heldEvents = 500
	// leaksAllowed is how many steps may have been given up, and still run, in a process that takes others.
	leaksAllowed = 3
	// mostSteps bounds the steps that a turn begins: the others are sent to their queues.
	mostSteps = 1000
	// chainTurns and chainTime bound for how long an invocation goes from step to step: its instance's messages wait meanwhile.
	chainTurns = 1000
	chainTime  = 10 * time.Second
)

// limitsOf are those of an invocation whose context is ctx.
func limitsOf(ctx context.Context, o *Orchestrator) inlineLimits {
	l := inlineLimits{each: max(o.options.InlineTimeout, 0)}
	if end, ok := ctx.Deadline(); ok {
		left := end.Sub(o.options.Clock())
		l.each = min(l.each, left/inlineShare)
		l.end = end.Add(-min(commitReserve, left/4))
	}
	return l
}

// runSteps runs what a turn has scheduled inline, and what still runs of earlier ones, until it is time to commit.
func runSteps(ctx context.Context, s *session, events []history.Event) (next, error) {
	s.steps.heed(events)
	fresh := stepsOf(s, events) // of those that are cancelled at once none begins
	if len(fresh) > 0 && !s.x.verified {
		if current, err := isHead(ctx, s); !current || err != nil {
			return verify, err
		}
	}
	for _, st := range fresh {
		s.steps.add(st)
	}
	if s.steps.any() {
		awaitSteps(ctx, s, events)
	}
	return goOn, nil
}

// stepsOf are the activities that a turn has scheduled, and that are to run in this invocation.
func stepsOf(s *session, events []history.Event) (fresh []*step) {
	scheduled := inlineOf(s, events)
	if len(scheduled) == 0 { // most turns schedule nothing inline
		return nil
	}
	of := &view{s.o, s.item.InstanceID, s.x.head.ExecutionID}
	for _, e := range scheduled {
		activity, _ := s.o.registry.Activity(e.Name)
		fresh = append(fresh, &step{event: *e, activity: activity, view: of})
	}
	return fresh
}

// inlineOf are the events that schedule them.
func inlineOf(s *session, events []history.Event) (scheduled []*history.Event) {
	var cancelled map[int64]bool
	for i := range events {
		switch e := &events[i]; {
		case e.Kind == history.ActivityScheduled && e.Inline:
			if _, ok := s.o.registry.Activity(e.Name); ok {
				scheduled = append(scheduled, e)
			}
		case e.Kind == history.ActivityCancelRequested && scheduled != nil: // what is cancelled was scheduled before
			if cancelled == nil {
				cancelled = map[int64]bool{}
			}
			for _, id := range e.Sources() {
				cancelled[id] = true
			}
		case e.Kind.Terminal():
			return nil
		default: // it schedules nothing
		}
	}
	if len(scheduled) == 0 || !mayRunSteps(s) {
		return nil
	}
	scheduled = slices.DeleteFunc(scheduled, func(e *history.Event) bool { return cancelled[e.ID] })
	return scheduled[:min(len(scheduled), mostSteps)]
}

// mayRunSteps reports whether the session may run anything inline. Where a message was delivered before, a step may have taken its process down, or
// may be what does so next: the steps go to their queues, where poison is the activity's and not the instance's (R13).
func mayRunSteps(s *session) bool {
	messages := s.backlog.unacknowledged()
	again := func(m provider.InboxMessage) bool { return m.Record.ReceiveCount > 1 || m.Redrive != nil }
	return len(messages) > 0 && !slices.ContainsFunc(messages, again) && !s.poison.alone &&
		!s.asked.is && s.o.leaks.Load() < leaksAllowed && inlineUntil(s, s.o.options.Clock()).After(s.o.options.Clock())
}

// inlineUntil is when a step is to be over that begins now.
func inlineUntil(s *session, now time.Time) time.Time {
	until := intake.Earlier(now.Add(s.inline.each), s.inline.end)
	if lock := s.item.LockedUntil(); !lock.IsZero() {
		until = intake.Earlier(until, lock.Add(-commitReserve))
	}
	return until
}

// isHead looks, strongly consistent, whether the view is still the head (R5): a step of a turn that another has committed must not run. It is a
// read of one unit.
func isHead(ctx context.Context, s *session) (bool, error) {
	behind := s.x.head.Segment + 1
	later, err := s.o.provider.ReadSettled(ctx, s.x.head.ExecutionID, behind)
	switch {
	case errors.Is(err, provider.ErrCorrupt):
		return false, nil
	case err != nil:
		return false, err
	case later.Next != behind || later.Ended:
		return false, nil
	}
	s.x.markVerified()
	return true, nil
}

// awaitSteps runs the steps until the code would go on, or all have ended, or the commit is due.
func awaitSteps(ctx context.Context, s *session, events []history.Event) {
	clock, within := s.o.options.Clock, stepContext(ctx, events)
	s.asked.begin(clock())
	commitBy := later(inlineUntil(s, clock()), lastOf(s.steps.all))
	var lingers time.Time // until when the code's going on waits for what is about to come
	for {
		now := clock()
		s.steps.look(now)
		if until := inlineUntil(s, now); now.Before(commitBy) && now.Before(until) {
			s.steps.begin(within, until)
		}
		if s.asked.looks(ctx, s, now) {
			s.steps.stopRest(now, every)
			s.steps.holdBack(now.Add(interruptionLeads))
		}
		if lingers.IsZero() && s.x.instance.Wakes(s.steps.isDone) {
			lingers = now.Add(stepLinger)
		}
		due := intake.Earlier(commitBy.Add(stepGrace), lingers)
		if !s.steps.isBusy(now) || !now.Before(due) || ctx.Err() != nil {
			break
		}
		s.steps.await(ctx, now, intake.Earlier(intake.Earlier(due, nextOf(s.steps.all)), s.asked.at()))
	}
	s.steps.stopRest(clock(), func(st *step) bool {
		return st.phase == stepWaits || len(events) > heldEvents || ctx.Err() != nil
	})
}

// stepContext is what the code of steps runs under: the context of the turn, with the turn's trace.
func stepContext(ctx context.Context, events []history.Event) context.Context {
	if t := events[0].TraceParent; t != "" {
		return perdure.WithTraceParent(ctx, string(t))
	}
	return ctx
}

// sendSteps sends the steps to their queues that a commit has left behind.
func sendSteps(ctx context.Context, s *session, unsent []*step) error {
	if len(unsent) == 0 {
		return nil
	}
	var out provider.Outputs
	for _, st := range unsent {
		out.Add(st.outputs())
	}
	if err := s.o.provider.PutWorkItems(ctx, out.WorkItems...); err != nil {
		return err
	}
	if len(out.Timers) == 0 {
		return nil
	}
	return s.o.provider.HoldTimers(ctx, out.Timers...)
}

// handStepsOver has all steps go on in their queues: no turn of this session takes their outcomes.
func handStepsOver(ctx context.Context, s *session) error {
	if !s.steps.any() {
		return nil
	}
	s.steps.stopRest(s.o.options.Clock(), every)
	s.steps.unkept(nil)
	return sendSteps(ctx, s, s.steps.leave())
}

// chainOn has another invocation go on with a chain of steps that holds the instance for too long: messages to it wait meanwhile.
func chainOn(ctx context.Context, s *session) error {
	if s.x.state.InlineOutcomes == 0 || !s.x.due || s.steps.any() {
		return nil
	}
	s.chained++
	switch {
	case s.ahead != nil, s.unshown: // what was left to the next turn is for this invocation alone
		return nil
	case !s.asked.is && !chainIsLong(s, 0):
		return nil
	}
	wake := provider.Message{Kind: provider.MessageWake, InstanceID: s.item.InstanceID, ExecutionID: s.x.head.ExecutionID}
	if err := s.o.provider.EnqueueForOrchestrator(ctx, wake); err != nil {
		return err
	}
	s.x.idle()
	s.consume(0)
	return nil
}

// closeSteps ends what is left of the steps of a session. Code that ignores the end of its context is waited for, and then given up.
func closeSteps(ctx context.Context, s *session) {
	s.steps.drop()
	for _, st := range s.steps.awaitStrays(ctx, s.o.options.Clock) {
		s.o.stepMeter.Count(intake.MetricActivitiesLeaked, st.event.Name, 1)
		faults.Report(ctx, faults.Event{
			Kind: faults.GoroutineLeak, InstanceID: s.item.InstanceID, Activity: st.event.Name, ActivityID: st.event.ID,
		})
		st.log().WarnContext(ctx, "activity abandoned: it did not return after its context ended",
			"event", logevent.ActivityAbandoned, "inline", true)
	}
}
