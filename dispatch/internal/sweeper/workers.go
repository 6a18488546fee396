package sweeper

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// missingWorkers stores, for each queue, the time since which this process has found work items in the queue but no
// worker. One sweep is not enough, because the first work item starts a function, which reports after some seconds.
type missingWorkers struct {
	mu    sync.Mutex
	since map[string]time.Time // by queue
}

// missingTimeout is the time after which a missing worker is logged.
const missingTimeout = 3 * time.Minute

// reportMissingWorkers logs queues that have work items but no worker that has reported. Possible causes are a function
// that fails at init or may not read its queue, and a queue without a function.
func (s *Sweeper) reportMissingWorkers(ctx context.Context, r *result) {
	counts, err := s.Provider.CountWorkItems(ctx)
	if err != nil {
		r.add(ctx, err)
		return
	}
	maps.DeleteFunc(counts, func(_ string, n int) bool { return n == 0 })
	var reports map[string]provider.WorkerReport
	if len(counts) > 0 {
		if reports, err = s.Provider.ReadWorkers(ctx); err != nil {
			r.add(ctx, err)
			return
		}
	}
	now := s.Clock()
	for _, queue := range slices.Sorted(maps.Keys(counts)) {
		if w := reports[queue]; !w.Missing(now) {
			delete(counts, queue)
		}
	}
	for _, queue := range s.missing.update(counts, now) {
		s.logMissingWorker(ctx, queue, counts[queue], reports[queue], now)
	}
}

// update stores the queues whose workers are missing now. It returns those whose workers have been missing for
// missingTimeout.
func (m *missingWorkers) update(counts map[string]int, now time.Time) (overdue []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	since := map[string]time.Time{}
	for _, queue := range slices.Sorted(maps.Keys(counts)) {
		since[queue] = now
		if first, known := m.since[queue]; known {
			since[queue] = first
		}
		if now.Sub(since[queue]) >= missingTimeout {
			overdue = append(overdue, queue)
		}
	}
	m.since = since
	return overdue
}

func (s *Sweeper) logMissingWorker(
	ctx context.Context, queue string, waiting int, last provider.WorkerReport, now time.Time,
) {
	attrs := []any{
		"event", logevent.WorkerMissing, intake.DimensionHub, s.hubName, intake.DimensionQueue, queue,
		intake.MetricWithoutWorker, waiting,
	}
	if !last.SeenAt.IsZero() {
		attrs = append(attrs, "heardOf", last.SeenAt, "build", last.BuildID, "startedAt", last.StartedAt)
	}
	metrics := intake.MetricsOf(now, []string{intake.DimensionHub, intake.DimensionQueue},
		intake.MetricUnit{Name: intake.MetricWithoutWorker, Unit: intake.UnitCount})
	attrs = append(attrs, intake.MetricAttribute, metrics)
	s.Logger.WarnContext(ctx, "work waits in a queue without a worker", attrs...)
}
