// Package workerreport reports to the hub that a worker exists.
package workerreport

import (
	"context"
	"sync"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/provider"
)

// Reporter reports when a worker starts, and every few minutes while it works. The sweeper logs work items that wait in
// a queue without such reports. If the start was not reported, as in tests, the worker reports nothing. A Reporter is
// safe for concurrent use.
type Reporter struct {
	*intake.Base

	queue, buildID string

	mu   sync.Mutex
	next time.Time // zero if the start was not reported
}

// New returns a Reporter for a work queue. It makes no calls.
func New(b *intake.Base, queue, buildID string) *Reporter {
	return &Reporter{Base: b, queue: queue, buildID: buildID}
}

// timeout is the time limit of a report.
const timeout = 2 * time.Second

// ReportStart reports that the worker starts.
func (r *Reporter) ReportStart(ctx context.Context) error {
	now := r.Clock()
	r.mu.Lock()
	r.next = now.Add(provider.WorkerReportInterval)
	r.mu.Unlock()
	return r.report(ctx, now)
}

func (r *Reporter) report(ctx context.Context, startedAt time.Time) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer stop()
	return r.Provider.ReportWorker(ctx, provider.WorkerReport{
		Queue: r.queue, BuildID: r.buildID, StartedAt: startedAt,
	})
}

// ReportIfDue reports in the background that the worker is alive, if a report is due.
func (r *Reporter) ReportIfDue(ctx context.Context) {
	now := r.Clock()
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
			r.Logger.DebugContext(ctx, "worker report failed", "queue", r.queue, "error", err)
		}
	}()
}
