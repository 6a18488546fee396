package activities

import (
	"context"
	"slices"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/dispatch/internal/outcome"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// settlement sends the outcomes of tasks and deletes their records, or releases the records.
type settlement struct {
	base       *intake.Base
	options    *Options
	supervisor *supervisor
	crashes    *crashGuard
}

// settle sends the outcomes of tasks and deletes their records. It releases the other records immediately, and returns
// their IDs. The last records of a batch are left to the event source mapping if it can delete them as well.
func (s *settlement) settle(ctx context.Context, finished []finishedTask, last bool) (failed []string) {
	done := make([]provider.CompletedWorkItem, 0, len(finished))
	var releasing []*task
	finished = s.supervisor.recorder.storePending(ctx, s.supervisor.runLeases.storeOutcomes(ctx, finished))
	for _, e := range finished {
		if e.release {
			releasing = append(releasing, e.task)
			continue
		}
		done = append(done, provider.CompletedWorkItem{
			LockedWorkItem: e.task.item, Outcome: outcome.WithRun(e.task.item, e.outcome),
			KeepRecord: last && e.task.isDeletedByMapping(),
		})
	}
	if len(done) > 0 {
		refused, err := s.acknowledge(ctx, finished, done)
		if err != nil {
			s.options.Logger.ErrorContext(ctx, "sending activity outcomes failed, the activities will run again",
				"event", logevent.ActivityOutcomeSendFailed, "activities", len(refused), "error", err)
		}
		releasing = append(releasing, tasksOf(refused, finished)...)
	}

	s.crashes.unmark(ctx, releasing)
	s.supervisor.runLeases.release(ctx, releasing)
	return s.release(ctx, s.resend(ctx, releasing))
}

// isDeletedByMapping reports whether the event source mapping may delete the record of a task after its outcome is
// sent, which costs nothing. The record must be in its first delivery, without a crash marker, and locked for the
// queue's visibility timeout. No task of an exclusive key may wait for it.
func (t *task) isDeletedByMapping() bool {
	r := &t.item.Record
	return r.ReceiveCount == 1 && r.Hold == nil && !t.crashes.IsMarked() && r.Group == ""
}

// acknowledge sends outcomes and deletes records. It deletes the crash markers of records that could not be deleted or
// that ran alone. It reserves time before the deadline of ctx to delete these markers and the markers of the records
// that it returns.
func (s *settlement) acknowledge(
	ctx context.Context, finished []finishedTask, done []provider.CompletedWorkItem,
) (refused []provider.Record, err error) {
	limited := ctx
	if end, ok := ctx.Deadline(); ok {
		left := end.Sub(s.options.Clock())
		l, stop := context.WithTimeout(ctx, left-min(intake.UnmarkLimit, left/2))
		defer stop()
		limited = l
	}
	refused, err = s.base.Provider.AckWorkItems(limited, s.options.Queue, done)

	var remaining []*task
	for _, e := range finished {
		h := e.task.item.Record.Hold
		if !e.release && (e.task.crashes.CrashCount() > 0 || h != nil && !h.Ended()) {
			remaining = append(remaining, e.task)
		}
	}
	s.crashes.unmark(ctx, remaining)
	return refused, err
}

func tasksOf(records []provider.Record, finished []finishedTask) (tasks []*task) {
	for _, e := range finished {
		if slices.ContainsFunc(records, func(r provider.Record) bool { return r.ID == e.task.item.Record.ID }) {
			tasks = append(tasks, e.task)
		}
	}
	return tasks
}
