package work

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// settlement sends the outcomes of tasks and deletes their records, and gives back the rest.
type settlement struct {
	base     *intake.Base
	options  *Options
	provider provider.Provider
	manager  *manager
}

// settle sends the outcomes of tasks and deletes their records, and gives back at once what did not come to that. It returns the records
// whose locks stand. The last of a batch are left to whoever has handed it over, who deletes them anyway in a moment, where that can do it as well.
func (s *settlement) settle(ctx context.Context, ends []finished, last bool) (failed []string) {
	done := make([]provider.CompletedWorkItem, 0, len(ends))
	var back []*task
	for _, e := range s.manager.records.keepPending(ctx, s.manager.runs.keepOutcomes(ctx, ends)) {
		if e.back {
			back = append(back, e.task)
		} else {
			done = append(done, provider.CompletedWorkItem{LockedWorkItem: e.task.item, Outcome: named(e.task, e.outcome), KeepRecord: last && e.task.isForMapping()})
		}
	}
	if len(done) > 0 {
		refused, err := s.ack(ctx, ends, done)
		if err != nil {
			s.options.Logger.ErrorContext(ctx, "sending activity outcomes failed, the activities will run again",
				"event", logevent.ActivityOutcomeSendFailed, "activities", len(refused), "error", err)
		}
		back = append(back, tasksWith(refused, ends)...)
	}

	s.unmark(ctx, back)
	s.manager.runs.leave(ctx, back)
	return s.giveBack(ctx, s.sendAnew(ctx, back))
}

// isForMapping reports whether the record of a task may be deleted by its mapping, once its outcome is sent: it was delivered for the first time, so
// that it has no mark, and is locked for as long as the queue says, so that nobody has it before the mapping has deleted it; and nothing waits for that,
// as the next of an exclusive key does. A mapping bills that delete in any case.
func (t *task) isForMapping() bool {
	r := &t.item.Record
	return r.ReceiveCount == 1 && r.Hold == nil && !t.suspicion.marked && r.Group == ""
}

// ack sends how work items ended, and unmarks those whose records it could not delete, since they come again, or that ran alone: those
// cost so little, and it takes several marks. It leaves the rest of the invocation some of its reserve: what is refused by calls that hang
// goes back without its mark.
func (s *settlement) ack(ctx context.Context, ends []finished, done []provider.CompletedWorkItem) (refused []provider.Record, err error) {
	limited := ctx
	if end, ok := ctx.Deadline(); ok {
		left := end.Sub(s.options.Clock())
		l, stop := context.WithTimeout(ctx, left-min(intake.UnmarkLimit, left/2))
		defer stop()
		limited = l
	}
	refused, err = s.provider.AckWorkItems(limited, s.options.Queue, done)

	var stay []*task
	for _, e := range ends {
		if h := e.task.item.Record.Hold; !e.back && (e.task.suspicion.died > 0 || h != nil && !h.Ended()) {
			stay = append(stay, e.task)
		}
	}
	s.unmark(ctx, stay)
	return refused, err
}

// tasksWith finds the tasks of records.
func tasksWith(records []provider.Record, ends []finished) (tasks []*task) {
	for _, e := range ends {
		if slices.ContainsFunc(records, func(r provider.Record) bool { return r.ID == e.task.item.Record.ID }) {
			tasks = append(tasks, e.task)
		}
	}
	return tasks
}

// unmark takes away the marks of tasks whose records come again, before another process can see those: this one lives. A mark that stays
// for a failure counts as a death, of which it takes several.
func (s *settlement) unmark(ctx context.Context, tasks []*task) {
	marked := func(t *task) bool { return t.suspicion.marked && !t.suspicion.poison }
	if !slices.ContainsFunc(tasks, marked) {
		return
	}
	var unmarking sync.WaitGroup
	for _, t := range tasks {
		if !marked(t) {
			continue
		}
		unmarking.Go(func() {
			if err := intake.Unmark(ctx, s.base, t.attempt()); err != nil {
				t.log().WarnContext(ctx, "crash marker deletion failed", "event", logevent.CrashMarkerDeleteFailed,
					"error", err)
			}
		})
	}
	unmarking.Wait()
}

// sendAnew replaces the records of work items that are due for a new one, and returns the tasks that are to be given back instead.
func (s *settlement) sendAnew(ctx context.Context, back []*task) (rest []*task) {
	if len(back) == 0 {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	now := s.options.Clock()
	var replaced []*task
	var old []provider.Record
	var anew []provider.WorkItem
	for _, t := range back {
		if !s.isForNew(t, now) {
			rest = append(rest, t)
			continue
		}
		again := later(t.item, now)
		again.Redrive = again.Redrive.Next(t.item.Record.ID) // there may be marks, though they were not asked for
		replaced = append(replaced, t)
		old = append(old, t.item.Record)
		anew = append(anew, again)
	}
	if len(old) == 0 {
		return rest
	}

	if err := s.provider.PutWorkItems(ctx, anew...); err != nil {
		s.options.Logger.WarnContext(ctx, "resending work items failed, releasing their records",
			"event", logevent.WorkItemResendFailed, "queue", s.options.Queue, "records", len(old), "error", err)
		return append(rest, replaced...)
	}
	if err := s.provider.DeleteRecords(ctx, s.options.Queue, old...); err != nil {
		s.options.Logger.WarnContext(ctx, "deleting the old records of resent work items failed, both will be delivered",
			"event", logevent.WorkItemDuplicated, "queue", s.options.Queue, "error", err)
	}
	return rest
}

// isForNew reports whether a work item that goes back has failed again and again in a way that its code had no part in, or was stopped
// and has made progress: then a new record takes its place, of which the queue has counted no deliveries.
func (s *settlement) isForNew(t *task, now time.Time) bool {
	after := s.anewAfter(t)
	switch {
	case after < 0, t.item.Record.ReceiveCount < after, !t.item.Record.Held(now):
		return false
	case t.suspicion.poison, t.suspicion.died > 0 && !t.suspicion.forgotten:
		return false
	default:
		return t.stop.why == nil || s.manager.writer.hasProgressed(t)
	}
}

// later is a work item that is due again after the delay of its last delivery: the longest, if it has been sent anew before. One with an exclusive key
// comes behind the others of its key, without a delay, which its queue does not know.
func later(it *provider.LockedWorkItem, now time.Time) provider.WorkItem {
	delay := intake.RetryDelay(it.Record.ReceiveCount)
	if it.ResendCount > 0 {
		delay = intake.LongestRetryDelay
	}
	next, at := it.WorkItem, now.Add(delay).UTC()
	if next.NotBefore = &at; it.ExclusiveKey != "" {
		next.NotBefore = nil
	}
	next.PossibleDuplicate = true
	next.ResendCount = it.ResendCount + 1
	return next
}

// giveBack makes records visible again soon, also when ctx has ended, but for those whose lock is over: they may be another worker's.
func (s *settlement) giveBack(ctx context.Context, tasks []*task) (failed []string) {
	if len(tasks) == 0 {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	now := s.options.Clock()
	var held, apart, behind []provider.Record
	for _, t := range tasks {
		switch r := t.item.Record; {
		case !r.Held(now):
			failed = append(failed, r.ID)
		case t.place.wentBack():
			behind = append(behind, r)
		case t.suspicion.apart:
			apart = append(apart, r)
		default:
			held = append(held, r)
		}
	}
	failed = append(failed, intake.Abandon(ctx, s.base, s.options.Queue, held)...)
	failed = append(failed, intake.AbandonAfter(ctx, s.base, s.options.Queue, behind, atOnce)...)
	return append(failed, intake.AbandonAfter(ctx, s.base, s.options.Queue, apart, intake.Spread)...)
}
