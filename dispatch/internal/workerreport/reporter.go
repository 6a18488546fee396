// Package workerreport reports to the hub that a worker exists.
package workerreport

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/perdure/perdure/provider"
)

// Provider stores reports.
type Provider interface {
	ReportWorker(ctx context.Context, r provider.WorkerReport) error
}

// Options holds the options of a Reporter.
type Options struct {
	Queue, BuildID string
	Clock          func() time.Time
	Logger         *slog.Logger
}

// Reporter reports when a worker starts, and every few minutes while it works. The sweeper logs work items that wait in
// a queue without such reports. A worker whose start was not reported, as in tests, reports nothing. A Reporter is safe
// for concurrent use.
type Reporter struct {
	provider Provider
	options  Options

	mu   sync.Mutex
	next time.Time // zero if the start was not reported
}

// New returns a Reporter. It makes no calls.
func New(p Provider, o Options) *Reporter { return &Reporter{provider: p, options: o} }

// timeout is the time limit of a report.
const timeout = 2 * time.Second

// ReportStart reports that the worker starts.
func (r *Reporter) ReportStart(ctx context.Context) error {
	now := r.options.Clock()
	r.mu.Lock()
	r.next = now.Add(provider.WorkerReportInterval)
	r.mu.Unlock()
	return r.report(ctx, now)
}

func (r *Reporter) report(ctx context.Context, startedAt time.Time) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer stop()
	return r.provider.ReportWorker(ctx, provider.WorkerReport{
		Queue: r.options.Queue, BuildID: r.options.BuildID, StartedAt: startedAt,
	})
}

// ReportIfDue reports in the background that the worker works, if a report is due.
func (r *Reporter) ReportIfDue(ctx context.Context) {
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
