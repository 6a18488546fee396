package peers

import (
	"context"
	"sync"
	"time"

	"github.com/cschleiden/go-workflows/backend"
	"github.com/cschleiden/go-workflows/backend/history"
	"github.com/cschleiden/go-workflows/backend/monoprocess"
	"github.com/cschleiden/go-workflows/backend/sqlite"
	"github.com/cschleiden/go-workflows/client"
	"github.com/cschleiden/go-workflows/core"
	"github.com/cschleiden/go-workflows/worker"
	"github.com/cschleiden/go-workflows/workflow"

	"github.com/perdure/perdure/bench/workload"
)

func goWorkflows() Peer {
	return Peer{
		Name: "go-workflows", Version: "1.4.0", Where: "this process; SQLite in memory, no polling (monoprocess)",
		Open: openGoWorkflows,
	}
}

var goWorkflowsKinds = map[workload.Kind]any{
	workload.Chain: gwChain, workload.Fan: gwFan, workload.Race: gwRace, workload.Hold: gwHold,
}

func openGoWorkflows(context.Context, string) (*Opened, error) {
	e := &goWorkflowsEngine{}
	e.b = monoprocess.NewMonoprocessBackend(&countedBackend{
		sqlite.NewInMemoryBackend(sqlite.WithBackendOptions(backend.WithLogger(discard()))), &e.tally,
	})
	w := worker.New(e.b, nil)
	for _, k := range goWorkflowsKinds {
		if err := w.RegisterWorkflow(k); err != nil {
			return nil, err
		}
	}
	for _, a := range []any{gwNoop, gwBlock} {
		if err := w.RegisterActivity(a); err != nil {
			return nil, err
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	e.stop, e.c = stop, client.New(e.b)
	if err := w.Start(ctx); err != nil {
		stop()
		return nil, err
	}
	return &Opened{Engine: e}, nil
}

type goWorkflowsEngine struct {
	tally

	c    *client.Client
	b    backend.Backend
	stop context.CancelFunc
	live sync.Map // id to *workflow.Instance
}

func (e *goWorkflowsEngine) Run(ctx context.Context, kind workload.Kind, in workload.Input) (int, error) {
	i, err := e.c.CreateWorkflowInstance(ctx, client.WorkflowInstanceOptions{InstanceID: in.ID}, goWorkflowsKinds[kind],
		in)
	if err != nil {
		return 0, err
	}
	e.live.Store(in.ID, i)
	return client.GetWorkflowResult[int](ctx, e.c, i, 10*time.Minute)
}

func (e *goWorkflowsEngine) Cancel(ctx context.Context, id string) error {
	i, _ := e.live.Load(id)
	return e.c.CancelWorkflowInstance(ctx, i.(*workflow.Instance)) //nolint:forcetypeassert // stored by Run
}

func (e *goWorkflowsEngine) Close() error {
	e.stop()
	return nil
}

func gwNoop(_ context.Context, in workload.Payload) (int, error) { return workload.Noop(in), nil }

func gwBlock(ctx context.Context, id string) (int, error) { return 1, workload.Block(ctx, id, nil) }

func gwChain(ctx workflow.Context, in workload.Input) (int, error) {
	sum := 0
	for i := range in.N {
		v, err := workflow.ExecuteActivity[int](ctx, workflow.DefaultActivityOptions, gwNoop,
			workload.NewPayload(in.ID, i)).Get(ctx)
		if err != nil {
			return 0, err
		}
		sum += v
	}
	return sum, nil
}

func gwFan(ctx workflow.Context, in workload.Input) (int, error) {
	fs := make([]workflow.Future[int], in.N)
	for i := range fs {
		fs[i] = workflow.ExecuteActivity[int](ctx, workflow.DefaultActivityOptions, gwNoop,
			workload.NewPayload(in.ID, i))
	}
	sum := 0
	for _, f := range fs {
		v, err := f.Get(ctx)
		if err != nil {
			return 0, err
		}
		sum += v
	}
	return sum, nil
}

// gwRace awaits the loser, because the engine fails a workflow that returns while an activity is pending.
func gwRace(ctx workflow.Context, in workload.Input) (int, error) {
	limited, cancel := workflow.WithCancel(ctx)
	f := workflow.ExecuteActivity[int](limited, workflow.DefaultActivityOptions, gwBlock, in.ID)
	workflow.Select(ctx,
		workflow.Await(f, func(workflow.Context, workflow.Future[int]) {}),
		workflow.Await(workflow.ScheduleTimer(ctx, workload.RaceTimer), func(workflow.Context, workflow.Future[any]) {
			workload.Mark(workload.TimerMark(in.ID))
		}),
	)
	cancel()
	return f.Get(ctx)
}

func gwHold(ctx workflow.Context, in workload.Input) (int, error) {
	return workflow.ExecuteActivity[int](ctx, workflow.DefaultActivityOptions, gwBlock, in.ID).Get(ctx)
}

// countedBackend counts the calls for a workflow and its activities, also those that find no work, because each is an
// SQL statement. It does not count the client's status polls.
type countedBackend struct {
	backend.Backend

	t *tally
}

func (b *countedBackend) CreateWorkflowInstance(ctx context.Context, i *workflow.Instance, e *history.Event) error {
	return b.t.call(func() error { return b.Backend.CreateWorkflowInstance(ctx, i, e) })
}

func (b *countedBackend) GetWorkflowInstanceHistory(
	ctx context.Context, i *workflow.Instance, last *int64,
) ([]*history.Event, error) {
	defer b.t.add(time.Now())
	return b.Backend.GetWorkflowInstanceHistory(ctx, i, last)
}

func (b *countedBackend) GetWorkflowTask(ctx context.Context, queues []workflow.Queue) (*backend.WorkflowTask, error) {
	defer b.t.add(time.Now())
	return b.Backend.GetWorkflowTask(ctx, queues)
}

func (b *countedBackend) CompleteWorkflowTask(
	ctx context.Context, task *backend.WorkflowTask, state core.WorkflowInstanceState,
	executed, activities, timers []*history.Event, others []*history.WorkflowEvent,
) error {
	return b.t.call(func() error {
		return b.Backend.CompleteWorkflowTask(ctx, task, state, executed, activities, timers, others)
	})
}

func (b *countedBackend) GetActivityTask(ctx context.Context, queues []workflow.Queue) (*backend.ActivityTask, error) {
	defer b.t.add(time.Now())
	return b.Backend.GetActivityTask(ctx, queues)
}

func (b *countedBackend) CompleteActivityTask(
	ctx context.Context, task *backend.ActivityTask, result *history.Event,
) error {
	return b.t.call(func() error { return b.Backend.CompleteActivityTask(ctx, task, result) })
}
