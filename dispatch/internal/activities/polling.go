package activities

import (
	"context"
	"time"

	"github.com/perdure/perdure/provider"
)

// RenewRecords implements dispatch.Worker.RenewRecords.
func (w *Worker) RenewRecords(
	ctx context.Context, lock time.Duration, records ...provider.Record,
) (lost []provider.Record, err error) {
	started := w.options.Clock()
	tasks, items := w.supervisor.renewalItems(records, started)
	renewals, err := w.Provider.RenewWorkItemLocks(ctx, w.options.Queue, lock, items...)
	for i := range renewals {
		if renewals[i].Lost {
			lost = append(lost, items[i].Record)
		}
	}
	w.supervisor.polledRenewed(tasks, started, renewals, err)
	return lost, err
}

// renewalItems returns the running tasks of polled records, and the work items for their renewals. A task is nil if its
// record has no running task. The lock of such a record is renewed anyway.
func (s *supervisor) renewalItems(
	records []provider.Record, now time.Time,
) (tasks []*task, items []provider.LockedWorkItem) {
	s.Lock()
	defer s.Unlock()
	byRecord := map[string]*task{}
	for b := range s.batches {
		for i := range b.tasks {
			byRecord[b.tasks[i].item.Record.ID] = &b.tasks[i]
		}
	}

	tasks, items = make([]*task, len(records)), make([]provider.LockedWorkItem, len(records))
	for i := range records {
		items[i].Record = records[i]
		t := byRecord[records[i].ID]
		if t == nil || t.phase != phaseRunning || t.item.Record.ReceiptHandle != records[i].ReceiptHandle {
			continue
		}
		tasks[i], items[i] = t, s.renewalItem(t)
	}
	s.cancels.Skip(executionsOf(tasks), now)
	return tasks, items
}

// polledRenewed stops the activities whose renewals report that they are cancelled.
func (s *supervisor) polledRenewed(tasks []*task, started time.Time, renewals []provider.Renewal, err error) {
	s.Lock()
	now := s.options.Clock()
	if err == nil {
		s.cancels.Renewed(executionsOf(tasks), started)
	}
	for i, t := range tasks {
		if t == nil || t.phase != phaseRunning {
			continue
		}
		if err != nil {
			s.cancels.PollNow(t.item.ExecutionID, now)
		}
		if i < len(renewals) && !renewals[i].Lost { // the hold of a lost record has ended
			s.stopIfCancelled(t, renewals[i].Cancel, now)
		}
	}
	s.Unlock()
	s.Check()
}
