package peers

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/microsoft/durabletask-go/api"
	"github.com/microsoft/durabletask-go/backend"
	"github.com/microsoft/durabletask-go/backend/sqlite"
	"github.com/microsoft/durabletask-go/task"

	"github.com/perdure/perdure/bench/workload"
)

func durableTask() Peer {
	return Peer{
		Name: "durabletask-go", Version: "0.6.0", Where: "this process; SQLite in memory, polled",
		Open: openDurableTask,
	}
}

func openDurableTask(ctx context.Context, _ string) (*Opened, error) {
	r := task.NewTaskRegistry()
	var errs []error
	for k, f := range map[workload.Kind]task.Orchestrator{
		workload.Chain: dtChain, workload.Fan: dtFan, workload.Race: dtRace, workload.Hold: dtHold,
	} {
		errs = append(errs, r.AddOrchestratorN(string(k), f))
	}
	errs = append(errs, r.AddActivityN("noop", dtNoop), r.AddActivityN("block", dtBlock))
	e := &durableTaskEngine{}
	be := &countedTaskBackend{sqlite.NewSqliteBackend(sqlite.NewSqliteOptions(""), discardLogger{}), &e.tally}
	x := task.NewTaskExecutor(r)
	n := backend.WithMaxParallelism(100)
	e.w = backend.NewTaskHubWorker(be, backend.NewOrchestrationWorker(be, x, discardLogger{}, n),
		backend.NewActivityTaskWorker(be, x, discardLogger{}, n), discardLogger{})
	e.c = backend.NewTaskHubClient(be)
	return &Opened{Engine: e}, errors.Join(append(errs, e.w.Start(context.WithoutCancel(ctx)))...)
}

type durableTaskEngine struct {
	tally

	c backend.TaskHubClient
	w backend.TaskHubWorker
}

func (e *durableTaskEngine) Run(ctx context.Context, kind workload.Kind, in workload.Input) (out int, err error) {
	id, err := e.c.ScheduleNewOrchestration(ctx, string(kind), api.WithInstanceID(api.InstanceID(in.ID)),
		api.WithInput(in))
	if err != nil {
		return 0, err
	}
	m, err := e.wait(ctx, id)
	if err != nil {
		return 0, err
	}
	if m.FailureDetails != nil {
		return 0, errors.New(m.FailureDetails.GetErrorMessage())
	}
	return out, wrap("result", json.Unmarshal([]byte(m.SerializedOutput), &out))
}

// pollInterval is the interval of status polls.
const pollInterval = 2 * time.Millisecond

// wait polls the status of an instance. The client's own wait would distort the result: it polls after 100 ms and backs
// off to ten seconds.
func (e *durableTaskEngine) wait(ctx context.Context, id api.InstanceID) (*api.OrchestrationMetadata, error) {
	for {
		m, err := e.c.FetchOrchestrationMetadata(ctx, id)
		if err != nil || m.IsComplete() {
			return m, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pollInterval):
		}
	}
}

func (e *durableTaskEngine) Cancel(ctx context.Context, id string) error {
	return e.c.TerminateOrchestration(ctx, api.InstanceID(id))
}

// Close does not stop the worker, which would wait for its polls. The worker ends with the process.
func (e *durableTaskEngine) Close() error { return nil }

func dtNoop(ctx task.ActivityContext) (any, error) {
	var in workload.Payload
	if err := ctx.GetInput(&in); err != nil {
		return nil, err
	}
	return workload.Noop(in), nil
}

func dtBlock(ctx task.ActivityContext) (any, error) {
	var id string
	if err := ctx.GetInput(&id); err != nil {
		return nil, err
	}
	return 1, workload.Block(ctx.Context(), id, nil)
}

func dtChain(ctx *task.OrchestrationContext) (any, error) {
	var in workload.Input
	if err := ctx.GetInput(&in); err != nil {
		return nil, err
	}
	sum := 0
	for i := range in.N {
		var v int
		if err := ctx.CallActivity("noop",
			task.WithActivityInput(workload.NewPayload(in.ID, i))).Await(&v); err != nil {
			return nil, err
		}
		sum += v
	}
	return sum, nil
}

func dtFan(ctx *task.OrchestrationContext) (any, error) {
	var in workload.Input
	if err := ctx.GetInput(&in); err != nil {
		return nil, err
	}
	ts := make([]task.Task, in.N)
	for i := range ts {
		ts[i] = ctx.CallActivity("noop", task.WithActivityInput(workload.NewPayload(in.ID, i)))
	}
	sum := 0
	for _, t := range ts {
		var v int
		if err := t.Await(&v); err != nil {
			return nil, err
		}
		sum += v
	}
	return sum, nil
}

// dtRace awaits the timer and returns without the activity, because the engine has no select.
func dtRace(ctx *task.OrchestrationContext) (any, error) {
	var in workload.Input
	if err := ctx.GetInput(&in); err != nil {
		return nil, err
	}
	ctx.CallActivity("block", task.WithActivityInput(in.ID))
	if err := ctx.CreateTimer(workload.RaceTimer).Await(nil); err != nil {
		return nil, err
	}
	workload.Mark(workload.TimerMark(in.ID))
	return 0, nil
}

func dtHold(ctx *task.OrchestrationContext) (any, error) {
	var in workload.Input
	if err := ctx.GetInput(&in); err != nil {
		return nil, err
	}
	var v int
	err := ctx.CallActivity("block", task.WithActivityInput(in.ID)).Await(&v)
	return v, err
}

// countedTaskBackend counts the calls for an orchestration and its activities, with polls that find no work. It does
// not count the client's status polls.
type countedTaskBackend struct {
	backend.Backend

	t *tally
}

func (b *countedTaskBackend) CreateOrchestrationInstance(
	ctx context.Context, e *backend.HistoryEvent, o ...backend.OrchestrationIdReusePolicyOptions,
) error {
	return b.t.call(func() error { return b.Backend.CreateOrchestrationInstance(ctx, e, o...) })
}

func (b *countedTaskBackend) GetOrchestrationWorkItem(ctx context.Context) (*backend.OrchestrationWorkItem, error) {
	defer b.t.add(time.Now())
	return b.Backend.GetOrchestrationWorkItem(ctx)
}

func (b *countedTaskBackend) GetOrchestrationRuntimeState(
	ctx context.Context, w *backend.OrchestrationWorkItem,
) (*backend.OrchestrationRuntimeState, error) {
	defer b.t.add(time.Now())
	return b.Backend.GetOrchestrationRuntimeState(ctx, w)
}

func (b *countedTaskBackend) CompleteOrchestrationWorkItem(
	ctx context.Context, w *backend.OrchestrationWorkItem,
) error {
	return b.t.call(func() error { return b.Backend.CompleteOrchestrationWorkItem(ctx, w) })
}

func (b *countedTaskBackend) GetActivityWorkItem(ctx context.Context) (*backend.ActivityWorkItem, error) {
	defer b.t.add(time.Now())
	return b.Backend.GetActivityWorkItem(ctx)
}

func (b *countedTaskBackend) CompleteActivityWorkItem(ctx context.Context, w *backend.ActivityWorkItem) error {
	return b.t.call(func() error { return b.Backend.CompleteActivityWorkItem(ctx, w) })
}

// discardLogger is a logger that discards everything.
type discardLogger struct{}

func (discardLogger) Debug(...any)          {}
func (discardLogger) Debugf(string, ...any) {}
func (discardLogger) Info(...any)           {}
func (discardLogger) Infof(string, ...any)  {}
func (discardLogger) Warn(...any)           {}
func (discardLogger) Warnf(string, ...any)  {}
func (discardLogger) Error(...any)          {}
func (discardLogger) Errorf(string, ...any) {}
