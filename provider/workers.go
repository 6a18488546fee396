package provider

import (
	"context"
	"time"
)

// Workers records whether a work queue has a worker. A worker that fails to start processes no records, so workers
// report that they run, and an operator can find queues without one.
type Workers interface {
	// ReportWorker records that a worker of a queue runs now, by the provider's clock, and whether it has just started.
	// The order of concurrent reports is undefined.
	ReportWorker(ctx context.Context, r WorkerReport) error
	// ReadWorkers reads the last report of each work queue that has one, by queue. It can be a second behind.
	ReadWorkers(ctx context.Context) (map[string]WorkerReport, error)
	// CountWorkItems returns the approximate number of visible and received work items by work queue, without delayed
	// ones.
	CountWorkItems(ctx context.Context) (map[string]int, error)
}

// WorkerReport is the last report of any worker of a queue.
type WorkerReport struct {
	Queue   string
	BuildID string
	// StartedAt is the time when the last worker started. In ReportWorker, a non-zero value means that this worker has
	// just started.
	StartedAt time.Time
	// SeenAt is the time of the last report. ReportWorker ignores it.
	SeenAt time.Time
}

const (
	// WorkerReportInterval is the interval at which an active worker reports.
	WorkerReportInterval = 5 * time.Minute
	// WorkerMissingAfter is the time since a queue's last report after which it has no worker.
	WorkerMissingAfter = 2 * WorkerReportInterval
)

// Missing reports whether the queue has no worker at the given time. It is true for the zero report.
func (r *WorkerReport) Missing(at time.Time) bool { return at.Sub(r.SeenAt) > WorkerMissingAfter }
