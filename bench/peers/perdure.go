package peers

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/bench/workload"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
)

func perdureInMemory() Peer {
	return Peer{
		Name: "perdure", Version: "this checkout", Where: "this process; DynamoDB and SQS simulated in memory",
		Open: func(context.Context, string) (*Opened, error) {
			e := &memory{}
			var err error
			e.hub, err = simhub.New(simhub.Options{
				Registry: registry(), Concurrency: 16, Intercept: e.intercept, Interceptors: e.interceptors(),
			})
			if err != nil {
				return nil, err
			}
			debug.SetGCPercent(800) // as the Lambda functions do
			ctx, stop := context.WithCancel(context.Background())
			e.c, e.stop, e.served = client.New(e.hub.Provider), stop, make(chan struct{})
			go func() { defer close(e.served); e.hub.Cloud.Serve(ctx) }()
			return &Opened{Engine: e}, nil
		},
	}
}

// registry returns a registry with the orchestrations of the workloads.
func registry() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "noop", perdureNoop)
	perdure.AddActivity(r, "block", perdureBlock)
	perdure.AddOrchestration(r, string(workload.Chain), perdureChain)
	perdure.AddOrchestration(r, string(workload.Fan), perdureFan)
	perdure.AddOrchestration(r, string(workload.Race), perdureRace)
	perdure.AddOrchestration(r, string(workload.Hold),
		func(ctx *perdure.OrchestrationContext, in workload.Input) (int, error) {
			return perdure.CallActivity(ctx, perdureBlock, in.ID).Await(ctx)
		})
	return r
}

func perdureNoop(_ context.Context, in workload.Payload) (int, error) { return workload.Noop(in), nil }

func perdureBlock(ctx context.Context, id string) (int, error) {
	return 1, workload.Block(ctx, id, nil)
}

func perdureChain(ctx *perdure.OrchestrationContext, in workload.Input) (int, error) {
	sum := 0
	for i := range in.N {
		v, err := perdure.CallActivity(ctx, perdureNoop, workload.NewPayload(in.ID, i)).Await(ctx)
		if err != nil {
			return 0, err
		}
		sum += v
	}
	return sum, nil
}

func perdureFan(ctx *perdure.OrchestrationContext, in workload.Input) (int, error) {
	fs := make([]*perdure.Future[int], in.N)
	for i := range fs {
		fs[i] = perdure.CallActivity(ctx, perdureNoop, workload.NewPayload(in.ID, i))
	}
	sum := 0
	for _, f := range fs {
		v, err := f.Await(ctx)
		if err != nil {
			return 0, err
		}
		sum += v
	}
	return sum, nil
}

func perdureRace(ctx *perdure.OrchestrationContext, in workload.Input) (int, error) {
	timer := perdure.CreateTimer(ctx, workload.RaceTimer)
	if _, err := perdure.Select(ctx, perdure.CallActivity(ctx, perdureBlock, in.ID), timer); err != nil {
		return 0, err
	}
	workload.Mark(workload.TimerMark(in.ID))
	return 0, nil
}

// memory is perdure on a simulated AWS in memory.
type memory struct {
	perdureClient
	tally

	hub    *simhub.Hub
	stop   context.CancelFunc
	served chan struct{}
}

// intercept counts the calls of the engine and of the event source mappings, except the invocations that mappings make.
func (m *memory) intercept(ctx context.Context, c simaws.Call, next func() error) error {
	if c.Service == "Lambda" && c.Operation == "Invoke" || isStatusRequest(ctx) {
		return next()
	}
	return m.call(next)
}

func (m *memory) Close() error {
	m.stop()
	<-m.served
	m.hub.Close()
	return nil
}

// benchName is the name of hubs, queues and applications.
const benchName = "bench"

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
