package work

import (
	"context"
	"sync"
	"time"

	"github.com/perdure/perdure/provider"
)

// reporter reports to the hub that a worker is there: when it starts, and every few minutes in which it is given work, or is at work. So an
// activity that waits since all workers of its queue die at init, or there are none, can be told from one that is at work somewhere. A worker
// that never announced itself, as in tests, reports nothing.
type reporter struct {
	options  *Options
	provider provider.Provider

	mu   sync.Mutex
	next time.Time // zero: it was not announced
}

// reportLimit is how long a report may take. Nothing waits for it but the start of a process.
const reportLimit = 2 * time.Second

// announce reports that a worker starts.
func (r *reporter) announce(ctx context.Context) error {
	now := r.options.Clock()
	r.mu.Lock()
	r.next = now.Add(provider.WorkerReportInterval)
	r.mu.Unlock()
	return r.report(ctx, now)
}

func (r *reporter) report(ctx context.Context, startedAt time.Time) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), reportLimit)
	defer stop()
	return r.provider.ReportWorker(ctx, provider.WorkerReport{Queue: r.options.Queue, BuildID: r.options.BuildID, StartedAt: startedAt})
}

// atWork is called whenever there is something to do. It calls the provider beside that, and rarely.
func (r *reporter) atWork(ctx context.Context) {
	now := r.options.Clock()
	r.mu.Lock()
	due := !r.next.IsZero() && !now.Before(r.next)
	if due {
		r.next = now.Add(provider.WorkerReportInterval)
	}
	r.mu.Unlock()
	if !due {
		return
	}
	go func() {
		if err := r.report(ctx, time.Time{}); err != nil {
			r.options.Logger.DebugContext(ctx, "worker report failed", "queue", r.options.Queue, "error", err)
		}
	}()
}
