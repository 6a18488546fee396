package turns

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/body"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// steps are the inline activities of a session (R20). Only its own methods change it. Its goroutines tell it what came of them, and nothing else.
type steps struct {
	all []*step // those that are not over, in the order of their ids
	// strays are over, and their code may still run.
	strays []*step
	// changed has something when a step has told its end.
	changed chan struct{}
	timer   *time.Timer // of await, which uses it again; nil before the first

	mu   sync.Mutex
	told []*step // in the order in which they came
	ends []stepEnd
}

const (
	// stepsAtOnce is how many steps of a session run side by side.
	stepsAtOnce = 100
	// stepGrace is how long the code of a step is waited for whose context has ended.
	stepGrace = 250 * time.Millisecond
	// stepLinger is how long the outcome of a step waits for others that are about to come, to be committed with them.
	stepLinger = time.Millisecond
	// arrivingBytes bounds the outcomes that are committed with one turn, but for the first.
	arrivingBytes = 1 << 20
)

// any reports whether there are steps that concern the execution.
func (s *steps) any() bool { return len(s.all) > 0 }

// add adds a step that is to begin when there is room.
func (s *steps) add(st *step) {
	st.phase = stepWaits
	s.all = append(s.all, st)
}

// begin begins steps that wait, as far as there is room, unless there is no time for them: until is when each is to be over at the latest.
func (s *steps) begin(ctx context.Context, until time.Time) {
	if s.changed == nil {
		s.changed = make(chan struct{}, 1)
	}
	room := stepsAtOnce - countOf(s.all, stepRuns)
	for _, st := range s.all {
		if room == 0 {
			return
		}
		if st.phase != stepWaits {
			continue
		}
		room--
		within, cancel := context.WithCancelCause(body.Until(ctx, until))
		st.phase, st.until, st.cancel, st.poke = stepRuns, until, cancel, s.poke
		go st.run(within, s.tell)
	}
}

// tell is called by a step's goroutine, as its last.
func (s *steps) tell(st *step, end stepEnd) {
	s.mu.Lock()
	s.told, s.ends = append(s.told, st), append(s.ends, end)
	s.mu.Unlock()
	s.poke()
}

// poke has the session look. It may be called by any goroutine.
func (s *steps) poke() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// await waits until a step has told something, until a time, or until ctx ends.
func (s *steps) await(ctx context.Context, now, until time.Time) {
	if s.timer == nil {
		s.timer = time.NewTimer(until.Sub(now))
	} else {
		s.timer.Reset(until.Sub(now))
	}
	defer s.timer.Stop()
	select {
	case <-s.changed:
	case <-s.timer.C:
	case <-ctx.Done():
	}
}

// look takes what steps have told, and stops those that have run for too long.
func (s *steps) look(now time.Time) {
	s.mu.Lock()
	told, ends := s.told, s.ends
	s.told, s.ends = nil, nil
	s.mu.Unlock()
	for i, st := range told {
		s.ended(st, ends[i])
	}
	for _, st := range s.all {
		if st.phase == stepRuns && !now.Before(st.until) {
			s.stop(st, now)
		}
	}
}

// ended takes the end of a step. What was stopped before has none, whatever it says.
func (s *steps) ended(st *step, end stepEnd) {
	if st.phase != stepRuns {
		st.giveUpAt = time.Time{}
		return
	}
	st.cancel(nil)
	st.came = end
	if st.phase = stepDone; end.outcome == nil {
		st.phase = stepLeaves
	}
}

// stop has a step that runs go on in its queue.
func (s *steps) stop(st *step, now time.Time) {
	st.phase, st.giveUpAt = stepLeaves, now.Add(stepGrace)
	st.came = st.goesOn()
	st.cancel(errStopped)
}

// stopRest has all steps that run, or wait, go on in their queues.
func (s *steps) stopRest(now time.Time, which func(*step) bool) {
	for _, st := range s.all {
		switch {
		case !which(st):
		case st.phase == stepWaits:
			st.phase = stepLeaves
		case st.phase == stepRuns:
			s.stop(st, now)
		}
	}
}

// holdBack has the steps that go on in their queues do so no earlier than at a time.
func (s *steps) holdBack(until time.Time) {
	for _, st := range s.all {
		if st.phase == stepLeaves {
			st.came.dueAt = later(st.came.dueAt, until.UTC().Truncate(intake.RetryUnit))
		}
	}
}

// every is all steps.
func every(*step) bool { return true }

// nextOf is when something is to be done if nothing comes: a step has run for too long, or its code is waited for no longer. Zero: never.
func nextOf(all []*step) (at time.Time) {
	for _, st := range all {
		switch {
		case st.phase == stepRuns:
			at = intake.Earlier(at, st.until)
		case st.phase == stepLeaves && !st.giveUpAt.IsZero():
			at = intake.Earlier(at, st.giveUpAt)
		}
	}
	return at
}

// lastOf is when the last of the steps that run is to be over.
func lastOf(all []*step) (at time.Time) {
	for _, st := range all {
		if st.phase == stepRuns {
			at = later(at, st.until)
		}
	}
	return at
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// isBusy reports whether something may still come: a step runs or waits, or the code of one that was stopped is still waited for.
func (s *steps) isBusy(now time.Time) bool {
	return slices.ContainsFunc(s.all, func(st *step) bool {
		return st.phase == stepRuns || st.phase == stepWaits || st.phase == stepLeaves && now.Before(st.giveUpAt)
	})
}

func countOf(all []*step, phase stepPhase) (n int) {
	for _, st := range all {
		if st.phase == phase {
			n++
		}
	}
	return n
}

// isDone reports whether a step has an outcome that is in no history yet.
func (s *steps) isDone(id int64) bool {
	st := s.find(id)
	return st != nil && st.phase == stepDone
}

func (s *steps) find(id int64) *step {
	i, ok := slices.BinarySearchFunc(s.all, id, func(st *step, id int64) int { return int(st.event.ID - id) })
	if !ok {
		return nil
	}
	return s.all[i]
}

// heed ends the contexts of steps that the events of a turn cancel.
func (s *steps) heed(events []history.Event) {
	if !s.any() {
		return
	}
	for i := range events {
		e := &events[i]
		if e.Kind != history.ActivityCancelRequested {
			continue
		}
		for _, id := range e.Sources() {
			if st := s.find(id); st != nil {
				s.give(st, &perdure.CancelledError{Reason: perdure.CancelReason(e.Reason), Message: e.Message})
			}
		}
	}
	s.forgetOver()
}

// give gives a step up.
func (s *steps) give(st *step, why error) {
	if st.cancel != nil {
		st.cancel(why)
	}
	s.over(st)
}

// over notes that a step concerns nobody any more.
func (s *steps) over(st *step) {
	st.phase = stepOver
	if st.inside.Load() > 0 {
		s.strays = append(s.strays, st)
	}
}

// errDropped is why the steps of a view that is given up are stopped.
var errDropped = &perdure.CancelledError{Reason: perdure.ReasonLockLost, Message: "the turn runs again"}

// drop gives all steps up, and reports whether any of them is scheduled in history: then a repeated dispatch has to send it.
func (s *steps) drop() (scheduled bool) {
	for _, st := range s.all {
		scheduled = scheduled || st.segment > 0
		s.give(st, errDropped)
	}
	s.all = nil
	return scheduled
}

func (s *steps) forgetOver() {
	s.all = slices.DeleteFunc(s.all, func(st *step) bool { return st.phase == stepOver })
}

// arriving adds to the events of a turn the outcomes that its commit takes: as many as it has room for.
func (s *steps) arriving(events []history.Event, now time.Time) []history.Event {
	total, decided := 0, len(events)
	for _, st := range s.all {
		if st.phase != stepDone {
			continue
		}
		if total += st.came.outcome.bytes(); total > arrivingBytes && len(events) > decided {
			break
		}
		events = append(events, st.came.outcome.event(st.event.ID, events[len(events)-1].ID+1, now))
	}
	return events
}

// unkept has all steps go on in their queues that have an outcome which is not among those that arrive.
func (s *steps) unkept(arriving []history.Event) {
	for _, st := range s.all {
		if st.phase == stepDone && !slices.ContainsFunc(arriving, func(e history.Event) bool { return e.SourceEventID == st.event.ID }) {
			st.phase = stepLeaves
		}
	}
}

// leaving notes in the events of a turn how steps go on that it schedules, and that their queues have from then on. It returns those that the
// process keeps.
func (s *steps) leaving(events []history.Event) (running map[int64]bool) {
	for i := range events {
		e := &events[i]
		if e.Kind != history.ActivityScheduled || !e.Inline {
			continue
		}
		st := s.find(e.ID)
		switch {
		case st == nil || st.segment > 0:
		case st.phase == stepLeaves:
			st.leave(e)
		default:
			if running == nil {
				running = map[int64]bool{}
			}
			running[e.ID] = true
		}
	}
	return running
}

// committed moves on to a segment that is history: the steps that it schedules are, and those whose outcomes it holds are over. It returns
// those that were scheduled before, and go on in their queues, which nobody has told so.
func (s *steps) committed(t *provider.Turn) (unsent []*step) {
	for i := range t.Events {
		if e := &t.Events[i]; e.IsInlineOutcome() {
			if st := s.find(e.SourceEventID); st != nil {
				s.over(st)
			}
		}
	}
	unsent = s.leave()
	noteScheduled(s, t)
	return unsent
}

// noteScheduled notes of steps that a segment schedules them, and their inputs as it has them.
func noteScheduled(s *steps, t *provider.Turn) {
	if !s.any() {
		return
	}
	for i := range t.Events {
		e := &t.Events[i]
		if e.Kind != history.ActivityScheduled || !e.Inline {
			continue
		}
		if st := s.find(e.ID); st != nil && st.segment == 0 {
			st.segment, st.input = t.Head.Segment+1, e.Input
		}
	}
}

// leave forgets the steps that go on in their queues, and returns those that were scheduled by an earlier commit: nobody has sent them.
func (s *steps) leave() (unsent []*step) {
	for _, st := range s.all {
		if st.phase != stepLeaves {
			continue
		}
		if st.segment > 0 {
			unsent = append(unsent, st)
		}
		s.over(st)
	}
	s.forgetOver()
	return unsent
}

// awaitStrays waits for the code of steps that are over, for no longer than its grace, and returns those that are given up.
func (s *steps) awaitStrays(ctx context.Context, clock func() time.Time) (given []*step) {
	inside := func(st *step) bool { return st.inside.Load() > 0 }
	for until := clock().Add(stepGrace); slices.ContainsFunc(s.strays, inside); {
		now := clock()
		if !now.Before(until) || ctx.Err() != nil {
			break
		}
		s.await(ctx, now, until)
	}
	for _, st := range s.strays {
		if inside(st) && st.leak() {
			given = append(given, st)
		}
	}
	s.strays = nil
	return given
}
