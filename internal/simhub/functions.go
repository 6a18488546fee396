package simhub

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"

	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// recordHandler is what a function does with the records of its event.
type recordHandler interface {
	HandleRecords(ctx context.Context, records []provider.Record) (failed []string)
}

func (h *Hub) dispatchOptions() dispatch.Options {
	return dispatch.Options{
		Registry: h.options.Registry, Provider: h.Provider, BuildID: "test", Logger: h.options.Logger,
		CacheBytes: h.options.CacheBytes, TurnLimit: h.options.TurnLimit, ExactRetries: !h.options.Jitter, MaxAttempts: h.options.MaxAttempts, Retention: h.options.Retention, SendAnewAfter: h.options.SendAnewAfter,
		LockAfter: h.options.LockAfter, LockTimeout: h.options.LockTimeout, LockRenewalBuffer: h.options.LockRenewalBuffer,
		CancelPollInterval: h.options.CancelPollInterval, CancellationGracePeriod: h.options.CancellationGracePeriod,
	}
}

func (h *Hub) mapFunctions(where dynamo.Hub) {
	for range h.options.Environments {
		h.Orchestrators = append(h.Orchestrators, dispatch.NewOrchestrator(h.dispatchOptions()))
	}
	h.Timekeeper = dispatch.NewTimekeeper(h.dispatchOptions())
	h.join(where.InboxURL, h.inTurn())
	for _, name := range h.workQueues() {
		opts := h.dispatchOptions()
		opts.Queue = name
		h.join(where.WorkQueues[name], always(h.worker(opts)))
	}
	h.join(where.TimersURL, always(h.Timekeeper))
}

// worker is a queue's; with a schedule its activities park.
func (h *Hub) worker(opts dispatch.Options) recordHandler {
	if h.Scheduler != nil {
		opts.Registry = stepped(opts.Registry, h.options.Begins)
	}
	w := dispatch.NewWorker(opts)
	h.Workers[opts.Queue] = w
	if h.Scheduler != nil {
		return apart{w}
	}
	return w
}

func always(r recordHandler) func() recordHandler { return func() recordHandler { return r } }

// inTurn gives each invocation the next orchestrator environment: as on Lambda, nothing ties an instance to one.
func (h *Hub) inTurn() func() recordHandler {
	var n atomic.Int64
	return func() recordHandler { return h.Orchestrators[int(n.Add(1)-1)%len(h.Orchestrators)] }
}

func (h *Hub) join(queueURL string, environment func() recordHandler) {
	h.Cloud.Map(queueURL, simaws.Mapping{
		Concurrency: h.options.Concurrency, BatchSize: h.options.BatchSize,
		Invoke: func(ctx context.Context, ms []sqstypes.Message) ([]string, error) {
			ctx, stop := context.WithCancel(ctx)
			defer stop()
			defer context.AfterFunc(h.life, stop)()
			ctx, release := h.limited(ctx)
			defer release()
			ctx, inv := begin(ctx, *ms[0].ReceiptHandle, h.Scheduler)
			if h.options.Mortal {
				h.holders.take(inv, ms)
			}
			failed := environment().HandleRecords(ctx, Records(ms))
			defer inv.ended.Store(true)
			return failed, inv.err()
		},
	})
}

// limited is the context of an invocation, which ends with the function's timeout.
func (h *Hub) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if h.options.InvocationLimit == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, h.options.InvocationLimit)
}

// holders are the invocations that messages were handed to last, by their ids.
type holders struct {
	mu sync.Mutex
	by map[string]*invocation
}

// take hands a batch to an invocation; those that still had messages of it are over.
func (o *holders) take(inv *invocation, batch []sqstypes.Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range batch {
		id := *batch[i].MessageId
		if before := o.by[id]; before != nil && before != inv && !before.ended.Load() { // a batch may have a message and its copy
			before.crashed.Store(true)
		}
		o.by[id] = inv
	}
}

// Records are messages as a function is handed them.
func Records(ms []sqstypes.Message) []provider.Record {
	rs := make([]provider.Record, len(ms))
	for i := range ms {
		m := &ms[i]
		count, _ := strconv.Atoi(m.Attributes["ApproximateReceiveCount"])
		rs[i] = provider.Record{
			ID: *m.MessageId, Lock: *m.ReceiptHandle, Body: *m.Body, ReceiveCount: count,
			Group: m.Attributes["MessageGroupId"], Sequence: m.Attributes["SequenceNumber"],
		}
	}
	return rs
}
