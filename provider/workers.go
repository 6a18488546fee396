package provider

import (
	"context"
	"time"
)

// Workers records whether any worker serves a work queue. A worker that dies before it has read its first record (at
// init, or for lack of a right of its function) leaves no trace, and its work waits. Workers therefore report that they
// are there, so that an operator can see that a queue has none.
type Workers interface {
	// ReportWorker records that a worker of a queue is there, now by the provider's clock, and whether it has just
	// started. Of concurrent reports any may be the last.
	ReportWorker(ctx context.Context, r WorkerReport) error
	// ReadWorkers reads the last report of each work queue that has one, by the names of the queues. It may be a second
	// behind.
	ReadWorkers(ctx context.Context) (map[string]WorkerReport, error)
	// CountWorkItems counts, approximately, the work items of each work queue of the hub: those that are visible and
	// those that are received, but not those that are delayed.
	CountWorkItems(ctx context.Context) (map[string]int, error)
}

// WorkerReport is what is known of the workers of a queue. A queue may have many; the report is of the one that
// reported last.
type WorkerReport struct {
	Queue   string
	BuildID string
	// StartedAt is when the last worker started. A non-zero value in ReportWorker means that this worker has just
	// started.
	StartedAt time.Time
	// SeenAt is when a worker last reported: it started, received work, or was at work. ReportWorker ignores it.
	SeenAt time.Time
}

const (
	// WorkerReportEvery is how often a worker reports that receives work, or is at work.
	WorkerReportEvery = 5 * time.Minute
	// WorkerMissingAfter is how long after a queue's last report none of its workers can be at work: twice the time
	// between reports.
	WorkerMissingAfter = 2 * WorkerReportEvery
)

// Missing reports whether, by the last report, none of a queue's workers can be at work at a time; the zero report is
// that of a queue that never had one.
func (r *WorkerReport) Missing(at time.Time) bool { return at.Sub(r.SeenAt) > WorkerMissingAfter }
