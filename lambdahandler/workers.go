package lambdahandler

import (
	"context"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// workers contains the worker of a work queue and the worker of its FIFO queue for exclusive keys.
type workers struct {
	shared *dispatch.Worker
	// exclusive is nil if the hub has no FIFO queue.
	exclusive *dispatch.Worker
}

// newWorkers creates the workers of the queue of the options, and reports them to the hub.
func (b *binary) newWorkers(
	ctx context.Context, r *perdure.Registry, p *dynamo.Provider, o *dispatch.WorkerOptions,
) (w *workers, err error) {
	w = &workers{}
	if w.shared, err = b.newWorker(ctx, r, p, o); err != nil {
		return nil, err
	}
	exclusive := *o
	exclusive.Queue = history.ExclusiveQueue(o.Queue)
	if _, exists := p.Config().WorkQueues[exclusive.Queue]; exists {
		w.exclusive, err = b.newWorker(ctx, r, p, &exclusive)
	}
	return w, err
}

func (b *binary) newWorker(
	ctx context.Context, r *perdure.Registry, p *dynamo.Provider, o *dispatch.WorkerOptions,
) (*dispatch.Worker, error) {
	w, err := dispatch.NewWorker(r, p, o)
	if err != nil {
		return nil, err
	}
	if err := w.ReportStart(ctx); err != nil {
		b.log.WarnContext(ctx, "worker report failed", "event", logevent.WorkerReportFailed, "queue", o.Queue,
			"error", err)
	}
	return w, nil
}

// HandleRecords passes the records of an event to the worker of their queue. All records of an event are from one
// queue. Records of a FIFO queue have sequence numbers.
func (w *workers) HandleRecords(ctx context.Context, records []provider.Record) (failed []string) {
	if w.exclusive != nil && len(records) > 0 && records[0].Sequence != "" {
		return w.exclusive.HandleRecords(ctx, records)
	}
	return w.shared.HandleRecords(ctx, records)
}
