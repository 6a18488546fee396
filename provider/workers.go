package provider

import (
	"context"
	"time"
)

// Workers tells whether anybody serves a work queue. A worker that dies before it has read its first record (at init, or for a right that its
// function lacks) leaves no trace of itself, and what was sent to it waits: so workers tell that they are there, and who looks can tell that none has.
type Workers interface {
	// ReportWorker notes that a worker of a queue is there, now by the provider's clock, and that it has just started, if it has. Of reports that come
	// at once any may be the last.
	ReportWorker(ctx context.Context, r WorkerReport) error
	// ReadWorkers reads the last report of each work queue that has one, by the names of the queues. It may be a second behind.
	ReadWorkers(ctx context.Context) (map[string]WorkerReport, error)
	// CountWorkItems counts, about, what each work queue of the hub has: what is visible, and what somebody has received; not what is delayed.
	CountWorkItems(ctx context.Context) (map[string]int, error)
}

// WorkerReport is what is known of the workers of a queue. They may be many; it is of the one that has reported last.
type WorkerReport struct {
	Queue   string
	BuildID string
	// StartedAt is when the last one started. In ReportWorker not zero says that it has just done so.
	StartedAt time.Time
	// SeenAt is when the last was heard of: it started, was given work, or was at work. ReportWorker takes no heed of it.
	SeenAt time.Time
}

const (
	// WorkerReportEvery is how often a worker reports that is given work, or is at work.
	WorkerReportEvery = 5 * time.Minute
	// WorkerMissingAfter is how long nothing was heard of a queue's workers when none can be at work: twice as long as their reports are apart.
	WorkerMissingAfter = 2 * WorkerReportEvery
)

// Missing reports whether none of a queue's workers can be at work at a time, by their last report; the zero report is of none that ever was.
func (r *WorkerReport) Missing(at time.Time) bool { return at.Sub(r.SeenAt) > WorkerMissingAfter }
