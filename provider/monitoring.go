package provider

import (
	"context"
	"time"
)

// Monitoring finds work queues without a worker and counts instances that may need an operator. Operators and the
// sweeper use it. It is optional (NoMonitoring), because the engine does not depend on it.
type Monitoring interface {
	// ReportWorker records that a worker of a queue is running now, and whether it has just started. The time is from
	// the provider's clock. The order of concurrent reports is undefined.
	ReportWorker(ctx context.Context, r WorkerReport) error
	// ReadWorkers reads the last report of each work queue, by queue. Queues without a report are missing. It can be a
	// second behind.
	ReadWorkers(ctx context.Context) (map[string]WorkerReport, error)
	// CountWorkItems returns the approximate number of visible and received work items by work queue. Delayed work
	// items are not counted.
	CountWorkItems(ctx context.Context) (map[string]int, error)
	// CountAttention counts the instances that may need an operator, for the hub's metrics. The counts can be from an
	// index that is behind. The cost of the call does not depend on the number of instances.
	CountAttention(ctx context.Context) (AttentionCounts, error)
}

// WorkerReport is the last report of any worker of a queue.
type WorkerReport struct {
	Queue   string
	BuildID string
	// StartedAt is the time at which the last worker started. In ReportWorker, a non-zero value means that this worker
	// has just started.
	StartedAt time.Time
	// SeenAt is the time of the last report. ReportWorker ignores it.
	SeenAt time.Time
}

const (
	// WorkerReportInterval is the interval at which an active worker reports.
	WorkerReportInterval = 5 * time.Minute
	// WorkerMissingAfter is the time after a queue's last report after which the queue is considered to have no worker.
	WorkerMissingAfter = 2 * WorkerReportInterval
)

// Missing reports whether the queue has no worker at the given time. It is true for the zero report.
func (r *WorkerReport) Missing(at time.Time) bool { return at.Sub(r.SeenAt) > WorkerMissingAfter }

// AttentionCounts counts the instances that may need an operator. Each count is at most MaxAttention.
type AttentionCounts struct {
	// Blocked is the number of blocked instances, in any build.
	Blocked int
	// Deleting is the number of instances whose deletion has made no progress for two minutes.
	Deleting int
	// OldestPending is the due time of the oldest pending instance that the sweeper found. The due time is the start,
	// or the end of its delay. OldestPending is zero if no instance is pending. If more than 64 instances are pending,
	// it is the oldest due time of 64 of them.
	OldestPending time.Time
}

// MaxAttention is the maximum of the counts of an AttentionCounts.
const MaxAttention = 1000
