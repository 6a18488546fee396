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
	// lateAfter is by how much a time must be past to be missed. A timer is about a second late.
	lateAfter = time.Minute
	// stepsPerExecution bounds the history of an execution: a run's result, or an order, may be of perdure.MaxPayloadBytes.
	stepsPerExecution = 20
	// linger is how long a schedule without further times waits for a Replace, so that one sent before its end is seen
	// is not lost.
	linger = time.Minute
	// maxErrorBytes is what is kept of a run's error.
	maxErrorBytes = 500
	// leftOutAtOnce is how many times are left out of a queue that is too large before it is written again.
	leftOutAtOnce = 50
)

// CommandEvent is the name of the external event that carries a Command.
const CommandEvent = "perdure.schedule"

// Command is a request to a schedule. At most one of Replace, RunAt, Backfill and Delete is set. Manual is valid only
// with RunAt. An empty Command makes the schedule check what is due.
type Command struct {
	// Replace replaces the definition of the schedule. A running run continues.
	Replace *Schedule `json:"set,omitempty"`
	// RunAt starts a run for that time now, as if it were due. With Manual, the run starts even if the schedule is
	// paused.
	RunAt  time.Time `json:"run,omitzero"`
	Manual bool      `json:"byHand,omitempty"`
	// Backfill starts the runs of a window in the past, one after the other, or concurrently with OverlapAllow. Times
	// that already have a run are skipped.
	Backfill *BackfillWindow `json:"backfill,omitempty"`
	// Delete ends the schedule one minute after its run has ended. A later Replace revokes it.
	Delete bool `json:"end,omitempty"`
}

// State is the input of a schedule's instance, and the state that it passes to the next execution. A client sets
// only Schedule.
type State struct {
	Schedule Schedule `json:"schedule"`
	// Anchor is the time from which rates count. All times up to ProcessedUntil have been processed.
	Anchor         time.Time `json:"anchor,omitzero"`
	ProcessedUntil time.Time `json:"seen,omitzero"`
	// Queue are the times that wait for their runs. Manual are those of them that were requested manually.
	Queue  []time.Time `json:"queue,omitempty"`
	Manual []time.Time `json:"byHand,omitempty"`
	// CatchUpTime is the missed time in Queue that CatchUpLast keeps until a pause ends.
	CatchUpTime time.Time `json:"kept,omitzero"`
	// Paused is the current pause, or nil.
	Paused *Pause `json:"paused,omitempty"`
	// Backfills are the remaining parts of the windows of backfills, in order.
	Backfills []BackfillWindow `json:"backfills,omitempty"`
	// Deleting is true if the schedule was deleted.
	Deleting bool   `json:"ending,omitempty"`
	Last     *Run   `json:"last,omitempty"`
	Counts   Counts `json:"counts,omitzero"`
}

// Register adds the orchestration of schedules to a registry, if the registry does not have it.
func Register(r *perdure.Registry) {
	if _, has := (*registry.Registry)(r).Orchestration(OrchestrationName, ""); !has {
		perdure.AddOrchestration(r, OrchestrationName, keep, perdure.WithVersion("1"), perdure.WithRetention(24*time.Hour))
	}
}

// keeper is one execution of a schedule.
type keeper struct {
	State

	ctx   *perdure.OrchestrationContext
	plan  *plan
	next  time.Time
	steps int // runs and orders of this execution

	orders *perdure.Future[Command]
	due    *perdure.Future[time.Time] // the next time, as the keeper waits for it; nil: it waits for none
	run    *run                       // under way; nil: none
	last   *perdure.Future[time.Time] // how long it lingers; nil: it does not
}

// keep is the orchestration: a look for each thing that happens, a time that comes, an order, the end of a run.
func keep(ctx *perdure.OrchestrationContext, b State) (Status, error) {
	k := &keeper{State: b, ctx: ctx}
	if err := b.Schedule.validateStored(); err != nil {
		return Status{}, err
	}
	if k.ProcessedUntil.IsZero() {
		k.Anchor, k.ProcessedUntil = ctx.Now(), ctx.Now()
	}
	k.plan, _ = k.Schedule.plan(k.Anchor)
	if err := takePauses(k); err != nil {
		return Status{}, err
	}
	k.orders = perdure.WaitForExternalEvent[Command](ctx, CommandEvent)
	for {
		k.takeOrders()
		if k.Paused == nil {
			k.lookAtTheClock(k.ctx)
		}
		k.lookAtTheRun()
		k.startRuns()
		if k.isFull() {
			return goOn(k)
		}

		ctx.SetCustomStatus(k.status())
		if k.isOver() {
			return k.status(), nil
		}
		if err := k.wait(); err != nil {
			return k.status(), err
		}
	}
}

// isFull: what is left is for the next execution. A run that is under way would be cancelled by the end of this one.
func (k *keeper) isFull() bool { return k.run == nil && k.steps >= stepsPerExecution }

// goOn continues as new. Where so much was asked for by hand that the queue, which names these twice, is too large beside the schedule's input, those that have
// waited longest are left out, as those beyond MaxQueuedRuns are: a schedule that failed here would start nothing any more.
func goOn(k *keeper) (Status, error) {
	for {
		next, err := perdure.ContinueAsNew[Status](k.ctx, k.State)
		if _, tooLarge := errors.AsType[*perdure.PayloadTooLargeError](err); !tooLarge || len(k.Queue) == 0 {
			return next, err
		}
		for range min(leftOutAtOnce, len(k.Queue)) {
			k.takeFirst()
			k.leaveOut(1, false)
		}
	}
}

// isOver: it has had nothing to do for a while.
func (k *keeper) isOver() bool { return k.isIdle() && k.last != nil && k.last.IsDone() }

// isIdle: nothing is due any more, and nothing under way. A pause keeps what is to come.
func (k *keeper) isIdle() bool {
	return k.run == nil && (k.Deleting || k.next.IsZero() && k.Paused == nil)
}

// takeOrders does what was asked for, in its order.
func (k *keeper) takeOrders() {
	for k.orders.IsDone() {
		o, err := k.orders.Await(k.ctx)
		if k.ctx.Err() != nil {
			return // the schedule is cancelled
		}
		k.orders = perdure.WaitForExternalEvent[Command](k.ctx, CommandEvent)
		k.steps++
		if err == nil {
			err = k.take(o)
		}
		if err != nil {
			k.ctx.Logger().Warn("schedule order invalid, ignoring it", "event", logevent.ScheduleOrderIgnored,
				"schedule", k.Schedule.ID, "error", err)
		}
	}
}

func (k *keeper) take(o Command) error {
	switch {
	case o.Replace != nil:
		return k.set(*o.Replace)
	case o.Delete:
		k.Deleting, k.Backfills = true, nil
		k.leaveOut(int64(len(k.takeAll())), false)
	case o.Backfill != nil:
		return backfill(k, *o.Backfill)
	case o.RunAt.IsZero():
	case k.Deleting:
		k.leaveOut(1, false)
	default:
		takeRun(k, o.RunAt.UTC(), o.Manual)
	}
	return nil
}

// set replaces the schedule. What has come due by the old one before this moment is dealt with by it.
func (k *keeper) set(s Schedule) error {
	s.ID = k.Schedule.ID
	if err := s.validateStored(); err != nil {
		return err
	}
	k.lookAtTheClock(k.ctx)
	if s.Expression != k.Schedule.Expression {
		k.Anchor = k.ctx.Now()
	}
	k.Schedule, k.Deleting = s, false
	k.plan, _ = s.plan(k.Anchor)
	return nil
}

// wait ends when an order comes, the run is over, or a time that matters comes. As long as a run keeps others from starting, no time does: they are
// looked at when it is over.
func (k *keeper) wait() error {
	waits := []perdure.Awaitable{k.orders}
	if k.run != nil {
		waits = append(waits, k.run.future)
	}
	timer := k.timer()
	if k.due = timer; timer != nil {
		waits = append(waits, timer)
	}

	_, err := perdure.WhenAny(k.ctx, waits...)
	if timer != nil && !timer.IsDone() {
		timer.Cancel("")
	}
	return err
}

// timer is for the next time that matters; nil where none does.
func (k *keeper) timer() *perdure.Future[time.Time] {
	switch k.last = nil; {
	case k.isIdle():
		k.last = perdure.CreateTimer(k.ctx, linger)
		return k.last
	case k.next.IsZero(), k.Deleting, k.Paused != nil, k.run != nil && k.runIsWaitedFor():
		return nil
	default:
		return perdure.CreateTimer(k.ctx, k.next.Sub(k.ctx.Now()))
	}
}

// runIsWaitedFor: what comes due while it lasts is looked at when it is over.
func (k *keeper) runIsWaitedFor() bool {
	switch k.Schedule.Overlap {
	case OverlapAllow:
		return false
	case OverlapCancel:
		return k.run.cancelled || k.run.past
	default:
		return true
	}
}

// status is what the schedule shows.
func (k *keeper) status() Status {
	s := Status{Schedule: k.Schedule, Paused: k.Paused, NextDue: k.next, Queued: len(k.Queue), Backfills: slices.Clone(k.Backfills), LastRun: k.Last, Deleting: k.Deleting, Counts: k.Counts}
	s.Schedule.Input = nil
	if k.run != nil {
		r := k.run.Run
		s.CurrentRun = &r
	}
	if k.Deleting || k.Paused != nil {
		s.NextDue = time.Time{}
	}
	return fit(s)
}
