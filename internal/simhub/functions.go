package simhub

import (
	"context"
	"sync"
	"sync/atomic"

	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/faults"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/sqsrecord"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// recordHandler processes the records of an invocation.
type recordHandler interface {
	HandleRecords(ctx context.Context, records []provider.Record) (failed []string)
}

func (h *Hub) mapFunctions(where dynamo.HubConfig) error {
	o := &h.options
	r := o.Registry
	if h.Scheduler != nil {
		r = inlineStepped(r, o.BeginsInline)
	}
	for range o.Environments {
		made, err := dispatch.NewOrchestrator(r, h.Provider, &dispatch.OrchestratorOptions{
			BuildID: o.BuildID, Logger: o.Logger, CacheBytes: o.CacheBytes, TurnTimeout: o.TurnTimeout,
			DisableJitter: !o.Jitter, MaxCrashes: o.MaxAttempts,
			Retention: o.Retention, Interceptors: o.Interceptors, Codecs: o.Codecs, HubName: hubName,
			Metrics: o.Metrics, InlineTimeout: o.InlineTimeout,
		})
		if err != nil {
			return err
		}
		h.Orchestrators = append(h.Orchestrators, made)
	}
	var err error
	if h.Renewer, err = dispatch.NewRenewer(h.Provider,
		&dispatch.RenewerOptions{HubName: hubName, Metrics: o.Metrics, Logger: o.Logger}); err != nil {
		return err
	}
	h.join(where.InboxURL, h.inTurn())
	for _, name := range h.workQueues() {
		if err := h.joinWorkers(where, name); err != nil {
			return err
		}
	}
	h.join(where.TimersURL, always(h.Renewer))
	return nil
}

// joinWorkers maps a work queue and its queue for exclusive keys to workers.
func (h *Hub) joinWorkers(where dynamo.HubConfig, name string) error {
	for _, queue := range h.options.served(name) {
		w, err := h.worker(queue)
		if err != nil {
			return err
		}
		h.join(where.WorkQueues[queue], always(w))
	}
	return nil
}

// hubName is the name of every hub.
const hubName = "test"

// PayloadBucket is the name of the bucket of a hub with Options.Bucket.
const PayloadBucket = "payloads"

// buildID is the default of Options.BuildID.
const buildID = "test"

// worker returns the worker of a queue. On a hub with a Schedule its activities park.
func (h *Hub) worker(queue string) (recordHandler, error) {
	o, r := &h.options, h.options.Registry
	if h.Scheduler != nil {
		r = stepped(r, o.Begins)
	}
	w, err := dispatch.NewWorker(r, h.Provider, &dispatch.WorkerOptions{
		BuildID: o.BuildID, Queue: queue, Logger: o.Logger, MaxCrashes: o.MaxAttempts,
		ResendAfterDeliveries: o.ResendAfterDeliveries,
		LeaseAfter:            o.LeaseAfter, LockTimeout: o.LockTimeout, LockRenewalBuffer: o.LockRenewalBuffer,
		CancelPollInterval: o.CancelPollInterval, CancellationGracePeriod: o.CancellationGracePeriod,
		Interceptors: o.Interceptors, Codecs: o.Codecs, HubName: hubName, Metrics: o.Metrics,
	})
	if err != nil {
		return nil, err
	}
	h.Workers[queue] = w
	if h.Scheduler != nil {
		return apart{w}, nil
	}
	return w, nil
}

func always(r recordHandler) func() recordHandler { return func() recordHandler { return r } }

// inTurn selects the next orchestrator environment for each invocation. As on Lambda, an instance has no fixed
// environment.
func (h *Hub) inTurn() func() recordHandler {
	var n atomic.Int64
	return func() recordHandler { return h.Environment(int(n.Add(1) - 1)) }
}

func (h *Hub) join(queueURL string, environment func() recordHandler) {
	h.Cloud.Map(queueURL, simaws.Mapping{
		Concurrency: h.options.Concurrency, BatchSize: h.options.BatchSize,
		Invoke: func(ctx context.Context, ms []sqstypes.Message) ([]string, error) {
			ctx, stop := context.WithCancel(faults.WithObserver(ctx, h.options.Faults))
			defer stop()
			defer context.AfterFunc(h.life, stop)()
			ctx, release := h.limited(ctx)
			defer release()
			ctx, inv := begin(ctx, *ms[0].ReceiptHandle, h.Scheduler)
			if h.options.EndOnRedelivery {
				h.holders.take(inv, ms)
			}
			failed := environment().HandleRecords(ctx, Records(ms))
			defer inv.ended.Store(true)
			return failed, inv.err()
		},
	})
}

// limited returns the context of an invocation with the function's timeout.
func (h *Hub) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if h.options.InvocationLimit == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, h.options.InvocationLimit)
}

// holders maps message IDs to the latest invocation of each message.
type holders struct {
	mu sync.Mutex
	by map[string]*invocation
}

// take assigns a batch to an invocation, and kills earlier invocations that have messages of the batch.
func (o *holders) take(inv *invocation, batch []sqstypes.Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range batch {
		id := *batch[i].MessageId
		// a batch can have a message and its duplicate
		if before := o.by[id]; before != nil && before != inv && !before.ended.Load() {
			before.crashed.Store(true)
		}
		o.by[id] = inv
	}
}

// Records converts messages to the records that a function receives.
func Records(ms []sqstypes.Message) []provider.Record {
	rs := make([]provider.Record, len(ms))
	for i := range ms {
		m := &ms[i]
		rs[i] = sqsrecord.Decode(*m.MessageId, *m.ReceiptHandle, *m.Body, m.Attributes)
	}
	return rs
}
