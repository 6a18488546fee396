package schedule

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
)

// run is a run that has not ended, with the future of its result.
type run struct {
	Run

	future    *perdure.Future[json.RawMessage]
	cancelled bool
	backfill  bool
}

// delaysTimes reports whether times that are due during the run are processed only after the run has ended.
func (r *run) delaysTimes(policy OverlapPolicy) bool {
	switch policy {
	case OverlapAllow:
		return false
	case OverlapCancel:
		return r.cancelled || r.backfill
	default:
		return true
	}
}

// checkRun records the end of the run.
func (s *scheduler) checkRun() {
	r := s.run
	if r == nil || !r.future.IsDone() {
		return
	}
	_, err := r.future.Await(s.ctx)
	if r.backfill && alreadyExists(err) {
		s.Counts.Started--
		s.run = nil
		return
	}
	r.EndedAt = s.ctx.Now()
	if r.Outcome, r.Error = outcomeOf(err); r.Outcome != OutcomeCompleted {
		s.Counts.Failed++
	}
	s.Last, s.run = &r.Run, nil
}

// alreadyExists reports whether a run was not started because its time already had a run.
func alreadyExists(err error) bool {
	failed, ok := errors.AsType[*perdure.SubOrchestrationError](err)
	return ok && failed.Type == history.TypeAlreadyExists
}

// cancelRun cancels the current run, because the next run is due.
func (s *scheduler) cancelRun() {
	if r := s.run; !r.cancelled && !r.future.IsDone() {
		r.cancelled = true
		r.future.Cancel("the next run of schedule " + s.Schedule.ID + " is due")
	}
}

func outcomeOf(err error) (Outcome, string) {
	if err == nil {
		return OutcomeCompleted, ""
	}
	text := history.TruncateMessage(err.Error(), maxErrorBytes)
	if _, ok := errors.AsType[*perdure.CancelledError](err); ok {
		return OutcomeCancelled, text
	}
	return OutcomeFailed, text
}

// startRuns starts the first run of the queue, or all runs with OverlapAllow, and then runs of backfills. It stops when
// the execution is full.
func (s *scheduler) startRuns() {
	for !s.isFull() && (s.run == nil || s.Schedule.Overlap == OverlapAllow) {
		t, backfill, ok := s.takeNext()
		switch {
		case !ok:
			return
		case s.Schedule.Overlap == OverlapAllow:
			s.startDetached(t)
		default:
			s.start(t, backfill)
		}
	}
}

// takeNext removes and returns the next time, from the queue or from a backfill.
func (s *scheduler) takeNext() (t time.Time, backfill, ok bool) {
	if s.Paused != nil {
		t, ok = s.takeManual()
		return t, false, ok
	}
	if len(s.Queue) > 0 {
		return s.takeFirst(), false, true
	}
	if s.run != nil && s.steps >= maxSteps {
		return t, false, false // the execution cannot continue as new during a run, so limit its history
	}
	windows := len(s.Backfills)
	t, ok = s.nextBackfill(s.ctx, s.plan)
	s.steps += windows - len(s.Backfills) // windows without a time also add events to the history
	return t, true, ok
}

// start starts a run and waits for its end.
func (s *scheduler) start(t time.Time, backfill bool) {
	s.steps++
	r := &run{Run: s.newRun(t, s.ctx.Now()), backfill: backfill}
	opts := s.Schedule.callOptions(r.InstanceID)
	opts = append(opts, perdure.WaitForCancellation())
	r.future = perdure.CallSubOrchestrationByName[json.RawMessage](
		s.ctx, s.Schedule.Orchestration, s.Schedule.runInput(), opts...)
	s.run = r
}

// startDetached starts a run and does not wait for its end.
func (s *scheduler) startDetached(t time.Time) {
	s.steps++
	r := s.newRun(t, s.ctx.Now())
	opts := s.Schedule.callOptions(r.InstanceID)
	_, err := perdure.StartOrchestration(s.ctx, s.Schedule.Orchestration, s.Schedule.runInput(), opts...)
	if err != nil {
		r.Outcome, r.Error = outcomeOf(err)
		s.Counts.Failed++
	}
	s.Last = &r
}

// newRun counts and returns a run that starts now.
func (s *State) newRun(t, now time.Time) Run {
	s.Counts.Started++
	return Run{InstanceID: RunID(s.Schedule.ID, t), Due: t, StartedAt: now}
}

func (s *Schedule) runInput() json.RawMessage {
	if len(s.Input) == 0 {
		return json.RawMessage("null")
	}
	return s.Input
}

// callOptions returns the options of the call that starts a run.
func (s *Schedule) callOptions(instanceID string) []perdure.SubOrchestrationCallOption {
	opts := []perdure.SubOrchestrationCallOption{perdure.WithInstanceID(instanceID)}
	if s.Version != "" {
		opts = append(opts, perdure.WithVersion(s.Version))
	}
	return opts
}
