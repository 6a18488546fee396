package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/perdure/perdure/internal/unwrap"
	"github.com/perdure/perdure/provider"
)

// Queue is the state of a queue of the hub. Its JSON is the same as in the HTTP API.
type Queue struct {
	// Name is "inbox", "timers" or the name of a work queue.
	Name string `json:"queue"`
	// Depth is the approximate number of visible and received work items. It excludes delayed work items. It is nil for
	// the inbox and the timers queue.
	Depth *int `json:"depth,omitempty"`
	// DeadLetters is the approximate number of dead letters, including hidden ones. It is nil if the client has no
	// access to dead letters.
	DeadLetters *int `json:"deadLetters,omitempty"`
	// Worker is the last report of any worker of the queue. It is nil if no worker has ever reported.
	Worker *QueueWorker `json:"worker,omitempty"`
	// NoWorker reports that the queue has work items, and that no worker has reported for ten minutes. Running workers
	// report twice in that time. It can be true for some seconds while the first worker starts.
	NoWorker bool `json:"noWorker,omitempty"`
}

// QueueWorker is the last report of any worker of a queue. A worker reports when it starts, and every five minutes
// while it receives work items.
type QueueWorker struct {
	// BuildID is the build of the worker.
	BuildID string `json:"buildId,omitempty"`
	// StartedAt is the time at which the last worker started, or zero if it is unknown.
	StartedAt time.Time `json:"startedAt,omitzero"`
	// LastReportedAt is the time of the last report.
	LastReportedAt time.Time `json:"seenAt"`
}

// Queues returns the queues of the hub, sorted by name, with their depth, their dead letters and the last report of
// their workers. A hub does not store the number of workers. SQS does not return the age of the oldest message, which
// is a CloudWatch metric.
//
// A call makes an SQS request for each work queue and each dead-letter queue, and one eventually consistent DynamoDB
// query of half a read unit per 4 KB. Depths and numbers of dead letters can be a minute behind.
//
// Queues returns a provider.UnsupportedError if the provider has no provider.Monitoring.
func (c *Client) Queues(ctx context.Context) ([]Queue, error) {
	queues, err := c.ops.listQueues(ctx)
	if err != nil {
		return nil, fmt.Errorf("admin: queues: %w", err)
	}
	return queues, nil
}

func (l local) listQueues(ctx context.Context) ([]Queue, error) {
	hub, ok := unwrap.As[provider.Monitoring](l.hub)
	if !ok {
		return nil, provider.UnsupportedError{Capability: provider.CapabilityMonitoring}
	}
	depths, err := hub.CountWorkItems(ctx)
	if err != nil {
		return nil, err
	}
	reports, err := hub.ReadWorkers(ctx)
	if err != nil {
		return nil, err
	}
	letters, err := l.countDeadLetters(ctx)
	if err != nil && !errors.Is(err, ErrDeadLettersUnsupported) {
		return nil, err
	}

	queues := map[string]Queue{}
	for name, depth := range depths {
		q := Queue{Name: name, Depth: &depth}
		report := reports[name]
		if !report.SeenAt.IsZero() {
			q.Worker = &QueueWorker{
				BuildID: report.BuildID, StartedAt: report.StartedAt, LastReportedAt: report.SeenAt,
			}
		}
		q.NoWorker = depth > 0 && report.Missing(l.now())
		queues[name] = q
	}
	for _, count := range letters {
		q := queues[count.Queue]
		n := count.Visible + count.InFlight
		q.Name, q.DeadLetters = count.Queue, &n
		queues[count.Queue] = q
	}
	return slices.SortedFunc(maps.Values(queues), func(a, b Queue) int { return cmp.Compare(a.Name, b.Name) }), nil
}
