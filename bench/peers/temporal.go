package peers

import (
	"context"
	"path/filepath"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/bench/servers"
	"github.com/perdure/perdure/bench/workload"
)

func temporal() Peer {
	return Peer{
		Name: "temporal", Version: "server 1.32.0, sdk 1.50.0", Server: true,
		Where: "server with SQLite in memory, over gRPC, without rate limits",
		Open:  openTemporal,
	}
}

const (
	temporalPollers = 8
	// temporalHeartbeat is the interval of heartbeats. The SDK learns of a cancel from their responses.
	temporalHeartbeat = 100 * time.Millisecond
)

func openTemporal(ctx context.Context, folder string) (*Opened, error) {
	o := &Opened{}
	s, err := servers.StartTemporal(ctx, filepath.Join(folder, "temporal"))
	if s != nil {
		o.addServer(s)
	}
	if err != nil {
		return o.failed(err)
	}
	c, err := client.DialContext(ctx, client.Options{
		HostPort: s.Address, Namespace: s.Namespace, Logger: log.NewStructuredLogger(discard()),
	})
	if err != nil {
		return o.failed(err)
	}
	w := worker.New(c, benchName, worker.Options{
		MaxConcurrentActivityTaskPollers: temporalPollers, MaxConcurrentWorkflowTaskPollers: temporalPollers,
		MaxHeartbeatThrottleInterval: temporalHeartbeat, DefaultHeartbeatThrottleInterval: temporalHeartbeat,
	})
	for k, f := range map[workload.Kind]any{
		workload.Chain: tpChain, workload.Fan: tpFan, workload.Race: tpRace, workload.Hold: tpHold,
	} {
		w.RegisterWorkflowWithOptions(f, workflow.RegisterOptions{Name: string(k)})
	}
	w.RegisterActivityWithOptions(tpNoop, activity.RegisterOptions{Name: "noop"})
	w.RegisterActivityWithOptions(tpBlock, activity.RegisterOptions{Name: "block"})
	o.Engine = &temporalEngine{c, w}
	if err := w.Start(); err != nil {
		return o.failed(err)
	}
	return o, nil
}

type temporalEngine struct {
	c client.Client
	w worker.Worker
}

func (e *temporalEngine) Run(ctx context.Context, kind workload.Kind, in workload.Input) (out int, err error) {
	r, err := e.c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: in.ID, TaskQueue: benchName}, string(kind), in)
	if err != nil {
		return 0, err
	}
	return out, wrap("result", r.Get(ctx, &out))
}

func (e *temporalEngine) Cancel(ctx context.Context, id string) error {
	return e.c.CancelWorkflow(ctx, id, "")
}

func (e *temporalEngine) Close() error {
	e.w.Stop()
	e.c.Close()
	return nil
}

func tpNoop(_ context.Context, in workload.Payload) (int, error) { return workload.Noop(in), nil }

func tpBlock(ctx context.Context, id string) (int, error) {
	return 1, workload.Block(ctx, id, func() { activity.RecordHeartbeat(ctx) })
}

func tpOptions(ctx workflow.Context) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 10 * time.Minute, HeartbeatTimeout: 2 * time.Second,
	})
}

func tpChain(ctx workflow.Context, in workload.Input) (int, error) {
	ctx = tpOptions(ctx)
	sum := 0
	for i := range in.N {
		var v int
		if err := workflow.ExecuteActivity(ctx, "noop", workload.NewPayload(in.ID, i)).Get(ctx, &v); err != nil {
			return 0, err
		}
		sum += v
	}
	return sum, nil
}

func tpFan(ctx workflow.Context, in workload.Input) (int, error) {
	ctx = tpOptions(ctx)
	fs := make([]workflow.Future, in.N)
	for i := range fs {
		fs[i] = workflow.ExecuteActivity(ctx, "noop", workload.NewPayload(in.ID, i))
	}
	sum := 0
	for _, f := range fs {
		var v int
		if err := f.Get(ctx, &v); err != nil {
			return 0, err
		}
		sum += v
	}
	return sum, nil
}

func tpRace(ctx workflow.Context, in workload.Input) (int, error) {
	limited, cancel := workflow.WithCancel(tpOptions(ctx))
	f := workflow.ExecuteActivity(limited, "block", in.ID)
	workflow.NewSelector(ctx).
		AddFuture(f, func(workflow.Future) {}).
		AddFuture(workflow.NewTimer(ctx, workload.RaceTimer), func(workflow.Future) {
			workload.Mark(workload.TimerMark(in.ID))
		}).
		Select(ctx)
	cancel()
	return 0, nil
}

func tpHold(ctx workflow.Context, in workload.Input) (int, error) {
	var v int
	err := workflow.ExecuteActivity(tpOptions(ctx), "block", in.ID).Get(ctx, &v)
	return v, err
}
