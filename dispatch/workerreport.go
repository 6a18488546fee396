package dispatch

import (
	"context"
	"sync"
	"time"

	"github.com/perdure/perdure/provider"
)

// reporter tells the hub that a worker is there: when it starts, and every few minutes in which it is given work, or is at work. So an
// activity that waits since all workers of its queue die at init, or there are none, can be told from one that is at work somewhere. A worker
// that never announced itself, as in tests, tells nothing.
type reporter struct {
	options *Options

	mu   sync.Mutex
	next time.Time // zero: it was not announced
}

// reportLimit is how long a report may take. Nothing waits for it but the start of a process.
const reportLimit = 2 * time.Second

// Announce makes known to the hub that a worker of Options.Queue has started. Once a process is enough; from then on it tells that it is at work, about every five
// minutes. At best: the error is for the log.
func (w *Worker) Announce(ctx context.Context) error {
	now := w.options.Clock()
	w.reporter.mu.Lock()
	w.reporter.next = now.Add(provider.WorkerReportEvery)
	w.reporter.mu.Unlock()
	return w.reporter.report(ctx, now)
}

func (r *reporter) report(ctx context.Context, startedAt time.Time) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), reportLimit)
	defer stop()
	return r.options.Provider.ReportWorker(ctx, provider.WorkerReport{Queue: r.options.Queue, BuildID: r.options.BuildID, StartedAt: startedAt})
}

// atWork is called whenever there is something to do. It calls the provider beside that, and rarely.
func (r *reporter) atWork(ctx context.Context) {
	now := r.options.Clock()
	r.mu.Lock()
	due := !r.next.IsZero() && !now.Before(r.next)
	if due {
		r.next = now.Add(provider.WorkerReportEvery)
	}
	r.mu.Unlock()
	if !due {
		return
	}
	go func() {
		if err := r.report(ctx, time.Time{}); err != nil {
			r.options.Logger.DebugContext(ctx, "it could not be reported that a worker is at work", "queue", r.options.Queue, "error", err)
		}
	}()
}
