package dispatch

import (
	"context"
	"time"

	"github.com/perdure/perdure/provider"
)

// RenewRecords extends the locks of records that HandleRecords was given and that were fetched, as provider.Polling does it (see there for
// lock, lost and err): it is for PollOptions.Renew. Each renewal answers whether the activity is cancelled, and is as good as a poll: one
// that runs is told.
func (w *Worker) RenewRecords(ctx context.Context, lock time.Duration, records ...provider.Record) (lost []provider.Record, err error) {
	tasks, items := w.manager.renewing(records)
	renewals, err := w.provider.RenewWorkItemLocks(ctx, w.options.Queue, lock, items...)
	for i := range renewals {
		if renewals[i].Lost {
			lost = append(lost, items[i].Record)
		}
	}
	w.manager.answered(tasks, renewals, err)
	return lost, err
}

// renewing finds the tasks of records, nil where there is none, yet or any more: such a record is renewed all the same.
func (m *manager) renewing(records []provider.Record) (tasks []*task, items []provider.LockedWorkItem) {
	m.mu.Lock()
	defer m.mu.Unlock()
	by := map[string]*task{}
	for s := range m.shifts {
		for i := range s.tasks {
			by[s.tasks[i].item.Record.ID] = &s.tasks[i]
		}
	}
	now := m.options.Clock()
	tasks, items = make([]*task, len(records)), make([]provider.LockedWorkItem, len(records))
	for i := range records {
		items[i].Record = records[i]
		t := by[records[i].ID]
		if t == nil || t.phase != phaseRunning || t.item.Record.Lock != records[i].Lock {
			continue
		}
		tasks[i], items[i] = t, t.item
		items[i].CancelsFrom = m.executions[t.item.ExecutionID].from
		m.postpone(t, now.Add(m.options.CancelPollInterval))
	}
	return tasks, items
}

// answered tells activities what their renewals have answered.
func (m *manager) answered(tasks []*task, renewals []provider.Renewal, err error) {
	m.mu.Lock()
	now := m.options.Clock()
	for i, t := range tasks {
		if t == nil || t.phase != phaseRunning {
			continue
		}
		if err != nil {
			m.postpone(t, now)
		}
		if i < len(renewals) && !renewals[i].Lost { // what is lost its hold says
			m.heed(t, renewals[i].Cancel, now)
		}
	}
	m.mu.Unlock()
	m.look()
}
