package memhub

import (
	"context"
	"maps"

	"github.com/perdure/perdure/provider"
)

// monitoring stores the reports of workers and counts work (provider.Monitoring).
type monitoring struct {
	*base

	queues    *queues
	instances *instances
	workers   map[string]provider.WorkerReport // by queue
}

// ReportWorker implements provider.Monitoring.
func (st *monitoring) ReportWorker(ctx context.Context, r provider.WorkerReport) error {
	return st.call(ctx, func() error {
		if r.StartedAt.IsZero() {
			r.StartedAt = st.workers[r.Queue].StartedAt
		}
		r.SeenAt = st.time()
		st.workers[r.Queue] = r
		return nil
	})
}

// ReadWorkers implements provider.Monitoring.
func (st *monitoring) ReadWorkers(ctx context.Context) (map[string]provider.WorkerReport, error) {
	return callFor(ctx, st.base, func() (map[string]provider.WorkerReport, error) {
		return maps.Clone(st.workers), nil
	})
}

// CountWorkItems implements provider.Monitoring.
func (st *monitoring) CountWorkItems(ctx context.Context) (map[string]int, error) {
	return callFor(ctx, st.base, func() (map[string]int, error) {
		counts := map[string]int{}
		for name, q := range st.queues.byName {
			if name == provider.QueueInbox || name == provider.QueueTimers {
				continue
			}
			counts[name] = 0
			for _, r := range q.Records {
				if r.ReceiveCount > 0 || !r.VisibleAt.After(st.now()) {
					counts[name]++
				}
			}
		}
		return counts, nil
	})
}

// CountAttention implements provider.Monitoring.
func (st *monitoring) CountAttention(ctx context.Context) (a provider.AttentionCounts, err error) {
	return callFor(ctx, st.base, func() (provider.AttentionCounts, error) {
		a.Blocked = min(len(st.instances.withStatus(provider.StatusBlocked)), provider.MaxAttention)
		for _, in := range st.instances.withStatus(provider.StatusPending) {
			begins := in.CreatedAt
			if in.StartAt.After(begins) {
				begins = in.StartAt
			}
			if !in.wakeAt.IsZero() && (a.OldestPending.IsZero() || begins.Before(a.OldestPending)) {
				a.OldestPending = begins
			}
		}
		return a, nil
	})
}
