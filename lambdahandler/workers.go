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

// workers are those of a work queue, and of the FIFO queue for exclusive keys beside it.
type workers struct {
	shared *dispatch.Worker
	// exclusive is nil where the hub has no such queue.
	exclusive *dispatch.Worker
}

// newWorkers makes the workers of the queue that the options name, and makes them known.
func (b *binary) newWorkers(ctx context.Context, r *perdure.Registry, p *dynamo.Provider, o *dispatch.WorkerOptions) (w *workers, err error) {
	w = &workers{}
	if w.shared, err = b.newWorker(ctx, r, p, o); err != nil {
		return nil, err
	}
	beside := *o
	beside.Queue = history.ExclusiveQueue(o.Queue)
	if _, there := p.Config().WorkQueues[beside.Queue]; there {
		w.exclusive, err = b.newWorker(ctx, r, p, &beside)
	}
	return w, err
}

func (b *binary) newWorker(ctx context.Context, r *perdure.Registry, p *dynamo.Provider, o *dispatch.WorkerOptions) (*dispatch.Worker, error) {
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

// HandleRecords hands the records of an event, which are of one queue, to that queue's worker: those of a FIFO queue are numbered.
func (w *workers) HandleRecords(ctx context.Context, records []provider.Record) (failed []string) {
	if w.exclusive != nil && len(records) > 0 && records[0].Sequence != "" {
		return w.exclusive.HandleRecords(ctx, records)
	}
	return w.shared.HandleRecords(ctx, records)
}
