package activities

import (
	"context"
	"sync"
	"time"

	"github.com/perdure/perdure/provider"
)

// reporter reports to the hub that the worker exists: when it starts, and every few minutes while it works. The
// sweeper logs work items that wait in a queue without such reports. A worker whose start was not reported, as in
// tests, reports nothing.
type reporter struct {
	options  *Options
	provider provider.Provider

	mu   sync.Mutex
	next time.Time // zero if the start was not reported
}

// reportTimeout is the time limit of a report.
const reportTimeout = 2 * time.Second

// reportStart reports that the worker starts.
func (r *reporter) reportStart(ctx context.Context) error {
	now := r.options.Clock()
	r.mu.Lock()
	r.next = now.Add(provider.WorkerReportInterval)
	r.mu.Unlock()
	return r.report(ctx, now)
}

func (r *reporter) report(ctx context.Context, startedAt time.Time) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
	defer stop()
	return r.provider.ReportWorker(ctx, provider.WorkerReport{
		Queue: r.options.Queue, BuildID: r.options.BuildID, StartedAt: startedAt,
	})
}

// reportIfDue reports in the background that the worker works, if a report is due.
func (r *reporter) reportIfDue(ctx context.Context) {
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
