package timers

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

// missing remembers since when this process has found that work waits in a queue which no worker serves. A first message starts its function, which
// reports in seconds: so one look is not enough.
type missing struct {
	mu    sync.Mutex
	since map[string]time.Time // by queue
}

// missedFor is how long a worker has been missing when that is logged.
const missedFor = 3 * time.Minute

// missWorkers looks for work that is not done: its queue has some, and no worker of it has reported. That is what is left to see of a function
// that dies at init, or may not read its queue, and of a queue without a function.
func (k *Timekeeper) missWorkers(ctx context.Context, t *tally) {
	counts, err := k.provider.CountWorkItems(ctx)
	if err != nil {
		t.note(ctx, err)
		return
	}
	maps.DeleteFunc(counts, func(_ string, n int) bool { return n == 0 })
	var reports map[string]provider.WorkerReport
	if len(counts) > 0 {
		if reports, err = k.provider.ReadWorkers(ctx); err != nil {
			t.note(ctx, err)
			return
		}
	}
	now := k.options.Clock()
	for _, queue := range slices.Sorted(maps.Keys(counts)) {
		if r := reports[queue]; !r.Missing(now) {
			delete(counts, queue)
		}
	}
	for _, queue := range k.missing.note(counts, now) {
		k.tellMissing(ctx, queue, counts[queue], reports[queue], now)
	}
}

// note takes the queues whose workers are missing, and returns those of which that has been so for long enough to be logged.
func (m *missing) note(counts map[string]int, now time.Time) (told []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	since := map[string]time.Time{}
	for _, queue := range slices.Sorted(maps.Keys(counts)) {
		since[queue] = now
		if first, known := m.since[queue]; known {
			since[queue] = first
		}
		if now.Sub(since[queue]) >= missedFor {
			told = append(told, queue)
		}
	}
	m.since = since
	return told
}

func (k *Timekeeper) tellMissing(ctx context.Context, queue string, waiting int, last provider.WorkerReport, now time.Time) {
	attrs := []any{
		"event", logevent.WorkerMissing, intake.DimensionHub, k.options.HubName, intake.DimensionQueue, queue,
		intake.MetricWithoutWorker, waiting,
	}
	if !last.SeenAt.IsZero() {
		attrs = append(attrs, "heardOf", last.SeenAt, "build", last.BuildID, "startedAt", last.StartedAt)
	}
	attrs = append(attrs, intake.MetricAttribute, intake.MetricsOf(now, []string{intake.DimensionHub, intake.DimensionQueue}, intake.MetricUnit{Name: intake.MetricWithoutWorker, Unit: intake.UnitCount}))
	k.options.Logger.WarnContext(ctx, "work waits in a queue without a worker", attrs...)
}
