package schedule

import (
	"errors"
	"slices"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/registry"
)

const (
	// missedAfter is the delay after which a scheduled time counts as missed. A timer is about a second late.
	missedAfter = time.Minute
	// maxSteps limits the history of an execution, because the result of a run and a command can have MaxPayloadBytes
	// each.
	maxSteps = 20
	// endDelay is the delay before a schedule without further times ends. Because of the delay, a Replace that is sent
	// shortly before the end is not lost.
	endDelay = time.Minute
	// maxErrorBytes is the size to which the error of a run is truncated.
	maxErrorBytes = 500
	// dropBatch is the number of times that are dropped from a queue that is too large before the next attempt to write
	// it.
	dropBatch = 50
)

// CommandEvent is the name of the external event that carries a Command.
const CommandEvent = "perdure.schedule"

// Command is a request to a schedule. At most one of Replace, RunAt, Backfill and Delete is set. Manual is valid only
// with RunAt. An empty Command wakes the schedule.
type Command struct {
	// Replace replaces the definition of the schedule. The current run continues.
	Replace *Schedule `json:"set,omitempty"`
	// RunAt starts a run for that time now, as if it were due. With Manual, the run starts even if the schedule is
	// paused.
	RunAt  time.Time `json:"run,omitzero"`
	Manual bool      `json:"byHand,omitempty"`
	// Backfill starts the runs of a window in the past. The runs start one after another, or concurrently with
	// OverlapAllow. Times that already have a run are skipped.
	Backfill *BackfillWindow `json:"backfill,omitempty"`
	// Delete ends the schedule one minute after its run has ended. A later Replace cancels the deletion.
	Delete bool `json:"end,omitempty"`
}

// State is the input of a schedule's instance, and the state that it passes to the next execution. A client sets
// only Schedule.
type State struct {
	Schedule Schedule `json:"schedule"`
	// Anchor is the time from which the periods of a rate count. All times up to ProcessedUntil have been processed.
	Anchor         time.Time `json:"anchor,omitzero"`
	ProcessedUntil time.Time `json:"seen,omitzero"`
	// Queue contains the times that wait for their runs. Manual contains the times of Queue that were requested
	// manually.
	Queue  []time.Time `json:"queue,omitempty"`
	Manual []time.Time `json:"byHand,omitempty"`
	// CatchUpTime is the missed time that CatchUpLast keeps in Queue until a pause ends.
	CatchUpTime time.Time `json:"kept,omitzero"`
	// Paused is the current pause, or nil.
	Paused *Pause `json:"paused,omitempty"`
	// Backfills contains the remaining parts of backfill windows, in order.
	Backfills []BackfillWindow `json:"backfills,omitempty"`
	// Deleting is true if the schedule was deleted.
	Deleting bool   `json:"ending,omitempty"`
	Last     *Run   `json:"last,omitempty"`
	Counts   Counts `json:"counts,omitzero"`
}

// Register adds the orchestration of schedules to a registry, if the registry does not have it.
func Register(r *perdure.Registry) {
	if _, has := (*registry.Registry)(r).Orchestration(OrchestrationName, ""); !has {
		perdure.AddOrchestration(r, OrchestrationName, runSchedule,
			perdure.WithVersion("1"), perdure.WithRetention(24*time.Hour))
	}
}

// scheduler is one execution of a schedule's instance.
type scheduler struct {
	State

	ctx   *perdure.OrchestrationContext
	plan  *plan
	next  time.Time // next scheduled time, or zero
	steps int       // number of runs and commands of this execution

	commands *perdure.Future[Command]
	timer    *perdure.Future[time.Time] // timer of the current wait, or nil
	run      *run                       // current run, or nil
	end      *perdure.Future[time.Time] // timer for the end of an idle schedule, or nil
}

// runSchedule is the orchestration of schedules. It handles commands, scheduled times and the ends of runs until the
// schedule ends.
func runSchedule(ctx *perdure.OrchestrationContext, state State) (Status, error) {
	s := &scheduler{State: state, ctx: ctx}
	if err := state.Schedule.validateStored(); err != nil {
		return Status{}, err
	}
	if s.ProcessedUntil.IsZero() {
		s.Anchor, s.ProcessedUntil = ctx.Now(), ctx.Now()
	}
	s.plan, _ = s.Schedule.plan(s.Anchor)
	if err := s.setUpdateHandlers(); err != nil {
		return Status{}, err
	}
	s.commands = perdure.WaitForExternalEvent[Command](ctx, CommandEvent)
	for {
		s.receiveCommands()
		if s.Paused == nil {
			s.processDue(s.ctx)
		}
		s.checkRun()
		s.startRuns()
		if s.isFull() {
			return s.continueAsNew()
		}

		ctx.SetCustomStatus(s.status())
		if s.hasEnded() {
			return s.status(), nil
		}
		if err := s.wait(); err != nil {
			return s.status(), err
		}
	}
}

// isFull reports whether the schedule must continue as new. It is false while a run is running, because the end of the
// execution would cancel the run.
func (s *scheduler) isFull() bool { return s.run == nil && s.steps >= maxSteps }

// continueAsNew passes the state to the next execution. Many manual runs can make the state too large, because they are
// also in Manual. In this case, the oldest times of the queue are dropped, because an error would end the schedule.
func (s *scheduler) continueAsNew() (Status, error) {
	for {
		next, err := perdure.ContinueAsNew[Status](s.ctx, s.State)
		if _, tooLarge := errors.AsType[*perdure.PayloadTooLargeError](err); !tooLarge || len(s.Queue) == 0 {
			return next, err
		}
		for range min(dropBatch, len(s.Queue)) {
			s.takeFirst()
			s.Counts.Missed++
		}
	}
}

// hasEnded reports whether the schedule has been idle for endDelay.
func (s *scheduler) hasEnded() bool { return s.isIdle() && s.end != nil && s.end.IsDone() }

// isIdle reports whether no run is running and no time is scheduled. A paused schedule is not idle.
func (s *scheduler) isIdle() bool {
	return s.run == nil && (s.Deleting || s.next.IsZero() && s.Paused == nil)
}

// receiveCommands applies the received commands in their order.
func (s *scheduler) receiveCommands() {
	for s.commands.IsDone() {
		c, err := s.commands.Await(s.ctx)
		if s.ctx.Err() != nil {
			return // the schedule is cancelled
		}
		s.commands = perdure.WaitForExternalEvent[Command](s.ctx, CommandEvent)
		s.steps++
		if err == nil {
			err = s.apply(c)
		}
		if err != nil {
			s.ctx.Logger().Warn("ignoring invalid schedule command", "event", logevent.ScheduleOrderIgnored,
				"schedule", s.Schedule.ID, "error", err)
		}
	}
}

func (s *scheduler) apply(c Command) error {
	switch {
	case c.Replace != nil:
		return s.replace(*c.Replace)
	case c.Delete:
		s.Deleting, s.Backfills = true, nil
		s.Counts.Missed += int64(len(s.takeAll()))
	case c.Backfill != nil:
		return s.addBackfill(*c.Backfill)
	case c.RunAt.IsZero():
	case s.Deleting:
		s.Counts.Missed++
	default:
		s.requestRun(c.RunAt.UTC(), c.Manual)
	}
	return nil
}

// replace replaces the definition of the schedule. The previous definition applies to times before the replacement.
func (s *scheduler) replace(next Schedule) error {
	next.ID = s.Schedule.ID
	if err := next.validateStored(); err != nil {
		return err
	}
	s.processDue(s.ctx)
	if next.Expression != s.Schedule.Expression {
		s.Anchor = s.ctx.Now()
	}
	s.Schedule, s.Deleting = next, false
	s.plan, _ = next.plan(s.Anchor)
	return nil
}

// wait waits for a command, the end of the run, or the next relevant time.
func (s *scheduler) wait() error {
	waits := []perdure.Awaitable{s.commands}
	if s.run != nil {
		waits = append(waits, s.run.future)
	}
	timer := s.createTimer()
	if s.timer = timer; timer != nil {
		waits = append(waits, timer)
	}

	_, err := perdure.WhenAny(s.ctx, waits...)
	if timer != nil && !timer.IsDone() {
		timer.Cancel("")
	}
	return err
}

// createTimer creates a timer for the next relevant time, or returns nil. While a run delays other runs, no timer is
// needed, because times are processed when the run has ended.
func (s *scheduler) createTimer() *perdure.Future[time.Time] {
	switch s.end = nil; {
	case s.isIdle():
		s.end = perdure.CreateTimer(s.ctx, endDelay)
		return s.end
	case s.next.IsZero(), s.Deleting, s.Paused != nil, s.run != nil && s.run.delaysTimes(s.Schedule.Overlap):
		return nil
	default:
		return perdure.CreateTimer(s.ctx, s.next.Sub(s.ctx.Now()))
	}
}

// status returns the status of the schedule.
func (s *scheduler) status() Status {
	status := Status{
		Schedule: s.Schedule, Paused: s.Paused, NextDue: s.next, Queued: len(s.Queue),
		Backfills: slices.Clone(s.Backfills), LastRun: s.Last, Deleting: s.Deleting, Counts: s.Counts,
	}
	status.Schedule.Input = nil
	if s.run != nil {
		r := s.run.Run
		status.CurrentRun = &r
	}
	if s.Deleting || s.Paused != nil {
		status.NextDue = time.Time{}
	}
	return truncate(status)
}
