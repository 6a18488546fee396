// Package observe reports turns to interceptors, logs and metrics.
package observe

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/execution"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/dispatch/internal/tasks"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/intercept"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/provider"
)

// Observer holds the interceptors and the meter of an orchestrator. It is safe for concurrent use.
type Observer struct {
	logger *slog.Logger
	// chain and listeners are nil if there are none.
	chain     *intercept.Chain[perdure.TurnInfo, perdure.TurnResult]
	listeners *tasks.Listeners
	meter     *intake.Meter // by orchestration
}

// New returns an observer. A nil meter collects nothing.
func New(log *slog.Logger, interceptors []perdure.Interceptor, m *intake.Meter) *Observer {
	chain := intercept.New("a turn", log, interceptors,
		func(i perdure.Interceptor) intercept.Func[perdure.TurnInfo, perdure.TurnResult] { return i.Turn })
	return &Observer{logger: log, chain: chain, listeners: tasks.NewListeners(log, interceptors), meter: m}
}

// Intercepts reports whether there are interceptors of turns.
func (o *Observer) Intercepts() bool { return o.chain != nil }

// TracksTasks reports whether interceptors need the tasks of turns.
func (o *Observer) TracksTasks() bool { return o.listeners != nil }

// Names returns the names of the interceptors.
func (o *Observer) Names() []string { return append(o.chain.Names(), o.listeners.Names()...) }

// Turns observes the turns of a session.
type Turns struct {
	observer *Observer
	// began is the start of the current turn, if metrics are on.
	began time.Time
	// result is the result of the current turn, for interceptors.
	result perdure.TurnResult
	// tasks are the tasks of the last committed turn, until they are reported.
	tasks *perdure.TurnTasks
}

// NewTurns returns the observer of a session.
func NewTurns(o *Observer) Turns { return Turns{observer: o} }

// Begin records the start of a turn.
func (t *Turns) Begin() { t.began = t.observer.meter.Now() }

// Run calls run inside the interceptors of a turn.
func (t *Turns) Run(
	ctx context.Context, x *execution.Execution, instanceID string, taken []provider.InboxMessage,
	run func(context.Context) error,
) error {
	result := t.observer.chain.Run(ctx, turnInfo(x, instanceID, taken), func(ctx context.Context) perdure.TurnResult {
		t.result = perdure.TurnResult{}
		err := run(ctx)
		t.result.Err = err
		return t.result
	})
	return result.Err
}

// Committed records a committed turn, after it was applied to its execution. waits are the waits for external events
// that have ended.
func (t *Turns) Committed(
	ctx context.Context, x *execution.Execution, committed *provider.Turn, waits []replay.WaitEnd,
) {
	logCancels(ctx, t.observer.logger, committed)
	if t.observer.chain != nil {
		t.result = resultOf(x, committed)
	}
	t.tasks = nil
	if x.Tasks != nil {
		t.tasks = x.Tasks.Commit(&x.Index, x.State().Name, committed, waits)
	}
	t.measure(x, committed)
}

// ReportTasks reports the tasks of the last committed turn to interceptors, once.
func (t *Turns) ReportTasks(ctx context.Context) {
	if turn := t.tasks; turn != nil {
		t.tasks = nil
		t.observer.listeners.Notify(ctx, *turn)
	}
}

// DiscardTasks discards the tasks of the last committed turn.
func (t *Turns) DiscardTasks() { t.tasks = nil }

func resultOf(x *execution.Execution, t *provider.Turn) perdure.TurnResult {
	state := &x.State().Summary
	result := perdure.TurnResult{Committed: true, EventCount: len(t.Events), Status: state.Status()}
	switch last := &t.Events[len(t.Events)-1]; {
	case last.Kind == history.OrchestrationFailed:
		result.Failure = last.Error.Clone()
	case state.Blocked.Active:
		result.Failure = state.Blocked.Diagnosis.Clone()
	}
	return result
}

// RecordTrace records the trace context of a turn in its first event, which is TurnStarted if code ran. All outputs of
// the turn are sent with it, also by a redispatch.
func RecordTrace(ctx context.Context, events []history.Event) {
	events[0].TraceParent = history.TraceParent(perdure.TraceParentFrom(ctx))
}

// turnInfo returns the description of the current turn for interceptors.
func turnInfo(x *execution.Execution, instanceID string, taken []provider.InboxMessage) perdure.TurnInfo {
	return perdure.TurnInfo{
		InstanceID: instanceID, ExecutionID: x.Head().ExecutionID, Name: x.State().Name, Version: x.Code.Version,
		Sequence: x.Head().Segment + 1, MessageCount: len(taken), Replayed: x.Read() != nil,
		TraceParents: traceParents(taken), ScheduledByTurns: scheduledBy(x, taken),
	}
}

// maxCauses is the maximum number of causes of a turn that interceptors receive.
const maxCauses = 32

func traceParents(all []provider.InboxMessage) (parents []string) {
	for i := range all {
		t := string(all[i].TraceParent)
		if t != "" && len(parents) < maxCauses && !slices.Contains(parents, t) {
			parents = append(parents, t)
		}
	}
	return parents
}

// scheduledBy returns the turns of an execution that have scheduled the tasks of messages.
func scheduledBy(x *execution.Execution, all []provider.InboxMessage) (turns []int64) {
	add := func(eventID int64) {
		if eventID < 1 || eventID > x.State().LastID || len(turns) == maxCauses {
			return
		}
		if turn := x.Index.SegmentOf(eventID); !slices.Contains(turns, turn) {
			turns = append(turns, turn)
		}
	}
	for i := range all {
		m := &all[i]
		if !x.Recipient.Concerns(m) {
			continue
		}
		for j := range m.Outcomes {
			add(m.Outcomes[j].ActivityID)
		}
		add(m.TimerID)
		add(m.SourceEventID)
	}
	slices.Sort(turns)
	return turns
}
