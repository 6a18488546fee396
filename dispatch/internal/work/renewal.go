package work

import (
	"context"
	"time"

	"github.com/perdure/perdure/provider"
)

// RenewRecords implements dispatch.Worker.RenewRecords.
func (w *Worker) RenewRecords(ctx context.Context, lock time.Duration, records ...provider.Record) (lost []provider.Record, err error) {
	asked := w.options.Clock()
	tasks, items := w.manager.tasksOf(records, asked)
	renewals, err := w.provider.RenewWorkItemLocks(ctx, w.options.Queue, lock, items...)
	for i := range renewals {
		if renewals[i].Lost {
			lost = append(lost, items[i].Record)
		}
	}
	w.manager.heedRenewals(tasks, asked, renewals, err)
	return lost, err
}

// tasksOf returns the tasks of records, and what their renewals ask. A task is nil where there is none, yet or any more: such a record is
// renewed all the same.
func (m *manager) tasksOf(records []provider.Record, now time.Time) (tasks []*task, items []provider.LockedWorkItem) {
	m.mu.Lock()
	defer m.mu.Unlock()
	by := map[string]*task{}
	for b := range m.batches {
		for i := range b.tasks {
			by[b.tasks[i].item.Record.ID] = &b.tasks[i]
		}
	}

	tasks, items = make([]*task, len(records)), make([]provider.LockedWorkItem, len(records))
	for i := range records {
		items[i].Record = records[i]
		t := by[records[i].ID]
		if t == nil || t.phase != phaseRunning || t.item.Record.ReceiptHandle != records[i].ReceiptHandle {
			continue
		}
		tasks[i], items[i] = t, m.leases.asking(t)
	}
	m.polls.instead(tasks, now)
	return tasks, items
}

// heedRenewals stops the activities that are cancelled as their renewals have answered.
func (m *manager) heedRenewals(tasks []*task, asked time.Time, renewals []provider.Renewal, err error) {
	m.mu.Lock()
	now := m.options.Clock()
	if err == nil {
		m.polls.answered(tasks, asked)
	}
	for i, t := range tasks {
		if t == nil || t.phase != phaseRunning {
			continue
		}
		if err != nil {
			m.polls.soon(t, now)
		}
		if i < len(renewals) && !renewals[i].Lost { // the hold of what is lost is ended
			m.heed(t, renewals[i].Cancel, now)
		}
	}
	m.mu.Unlock()
	m.look()
}
