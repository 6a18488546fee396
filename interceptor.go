package perdure

import (
	"context"
	"time"

	"github.com/perdure/perdure/history"
)

// Interceptor wraps the work of a hub's programs, for tracing, logging and metrics. All fields are optional. Configure
// interceptors with lambdahandler.WithInterceptors, client.WithInterceptors or the options of package dispatch. The
// first interceptor is the outermost one.
//
// A field with a next parameter must call next once, on the same goroutine, with ctx or a context derived from it. It
// must return after next has returned. The work runs exactly once even if the interceptor breaks these rules:
//
//   - If the interceptor does not call next, the work runs after the interceptor.
//   - A second call of next returns the result of the first one.
//   - A panic of the interceptor is logged.
//
// An interceptor cannot change a result, but a deadline or a cancellation of the context that it passes to next ends
// the work early. It must not call runtime.Goexit, and must always return. If an interceptor of a turn hangs, only the
// timeout of the invocation ends it. Set a timeout for all calls of the interceptor, for example of an exporter. An
// instance whose turns repeatedly end the process becomes blocked with a diagnosis that names the interceptors.
//
// Interceptors run outside the orchestration's code and cannot affect it, so replays do not depend on them. They are
// called from many goroutines concurrently.
type Interceptor struct {
	// Turn is called around each try of a turn, from before the orchestration's code runs until its decisions are
	// committed and sent. It is not called for replays. A turn is tried again after a crash, after a conflict with
	// another process, or with fewer messages if they exceed one commit. The ExecutionID and Sequence are the same in
	// each try. At most one try of a Sequence is reported as Committed. If the process dies after the commit, no
	// interceptor receives the result of that try.
	Turn func(ctx context.Context, t TurnInfo, next func(context.Context) TurnResult)

	// OnTasks is called once for each committed turn that scheduled or ended tasks. See TaskInfo for the kinds of
	// tasks. OnTasks runs within Turn, with the context that Turn passed to next, after the decisions of the turn were
	// sent or could not be sent. It is not called for replays or for tries that were not committed. If the process dies
	// between the commit and this call, the turn is not reported. Each task is therefore reported at most once as
	// scheduled and at most once as ended.
	//
	// OnTasks delays only the rest of the invocation. It receives all tasks of a turn together, about 200 bytes for
	// each task. Each instance in memory then needs about 200 more bytes for each open task.
	//
	// The end of a wait for an external event is not reported if no code runs, for example when a blocked or paused
	// instance is terminated.
	OnTasks func(ctx context.Context, t TurnTasks)

	// Activity is called around each run of an activity's code, once for each attempt and once for each redelivery that
	// runs the code again. It is not called for activities that were cancelled before they started, or that are not
	// registered in this build. next returns when the code returns, which can be after the attempt was abandoned. The
	// timeouts of an attempt include its interceptors.
	Activity func(ctx context.Context, a ActivityInfo, next func(context.Context) ActivityResult)

	// ClientCall is called around the client.Client and admin.Client calls listed in ClientCall.Operation, after their
	// arguments were checked. Reads, lock renewals and dead-letter operations are not intercepted.
	ClientCall func(ctx context.Context, c ClientCall, next func(context.Context) error)
}

// TurnInfo describes a turn.
type TurnInfo struct {
	InstanceID, ExecutionID string
	// Name and Version identify the orchestration. Version is empty if this build cannot run the orchestration.
	Name, Version string
	// Sequence is the number of the turn in its execution, from 1.
	Sequence int64
	// MessageCount is the number of messages that the turn may consume. It is 0 for the first turn after a
	// continue-as-new.
	MessageCount int
	// Replayed is true if the orchestration was rebuilt from its history for this turn or an earlier one of the same
	// invocation. It is false if the instance was warm.
	Replayed bool
	// TraceParents holds the trace contexts of the messages, in the order of the messages. ScheduledByTurns holds the
	// Sequences of the turns that scheduled the activities, timers and sub-orchestrations of the messages, in ascending
	// order. Sequence 0 is the start of the execution. Each slice has at most 32 entries.
	TraceParents     []string
	ScheduledByTurns []int64
}

// TurnResult is the result of a turn.
type TurnResult struct {
	// Committed is true if the turn was committed. If Err is also set, some decisions were not sent yet and are sent
	// again. If Committed is false and Err is nil, the turn made no decisions or is tried again immediately.
	Committed bool
	// EventCount is the number of events that the turn added to the history.
	EventCount int
	// Status is the status of the instance after the commit. It is empty if the turn was not committed.
	Status history.RuntimeStatus
	// Failure is the cause if the orchestration failed or is blocked. Otherwise it is nil.
	Failure *history.Failure
	// Err is the error if the turn could not run, be committed or be sent. The messages of the turn are then
	// redelivered.
	Err error
}

// ActivityResult is the result of a run of an activity's code.
type ActivityResult struct {
	// Failure is nil if the activity succeeded. It is set even if the activity will be retried.
	Failure *history.Failure
	// Pending is true if the code returned ErrPending and the attempt waits for asynchronous completion.
	Pending bool
}

// ClientCall describes a call of a client.Client or an admin.Client.
type ClientCall struct {
	// Operation is the name of the operation: Start, Raise, Update, Cancel, CancelActivity, Terminate, Pause, Resume,
	// Annotate, Purge, Bulk, CancelJob, Complete or Fail. Update covers sending the update, not the wait for its
	// result.
	Operation string
	// InstanceID is the ID of the instance. It is empty for Bulk and CancelJob.
	InstanceID string
	// Name is the name of the orchestration to start, the event to raise or the update to send. Otherwise it is empty.
	Name string
}

// TurnTasks are the tasks that a turn scheduled and ended. The interceptor owns the slices and their contents.
type TurnTasks struct {
	InstanceID, ExecutionID string
	// Name is the name of the orchestration.
	Name string
	// Sequence is the number of the turn in its execution, from 1.
	Sequence int64
	// Scheduled are the tasks that the turn scheduled, in the order of the calls.
	Scheduled []TaskInfo
	// Ended are the tasks that ended in the turn, including tasks that the same turn scheduled. Tasks whose end is an
	// event of the history come first, in the order of the history.
	Ended []TaskInfo
}

// TaskInfo describes a task: an activity, a timer, an orchestration, an external event, a sent event or update, or the
// handler of an update. Scopes, coroutines, items of Map and side effects are not tasks.
type TaskInfo struct {
	// ID is the ID of the event that scheduled the task. It is unique in its execution.
	ID   int64
	Kind TaskKind
	// Name is the name of the activity, orchestration, event, update or timer.
	Name string
	// InstanceID is the instance of the other orchestration, or the receiver of an event or update.
	InstanceID string
	// ScheduledAt is the time of the turn that scheduled the task, and ScheduledInTurn is the Sequence of that turn.
	// ScheduledInTurn is 0 if a restart from an event copied the task.
	ScheduledAt     time.Time
	ScheduledInTurn int64
	// TraceParent is the trace context of the turn that scheduled the task, in the form of TraceParentFrom. It is empty
	// if the turn was not traced.
	TraceParent string
	// DueAt is the time at which a timer fires.
	DueAt time.Time

	// Outcome describes how the task ended. It is empty in TurnTasks.Scheduled. EndedAt is the time of the turn that
	// processed the end. For an inline activity, EndedAt is the time at which the activity ended.
	Outcome TaskOutcome
	EndedAt time.Time
	// Attempt is the number of attempts that an activity had. For a scheduled orchestration, it is the number of the
	// attempt.
	Attempt int
	// Failure is the failure of the task, or nil. Its details can be encoded by a codec.
	Failure *history.Failure
	// Reason is the CancelReason of a cancelled task. It can be a reason for the end of the execution
	// ("orchestration_terminal_…").
	Reason string
}

// TaskKind is the kind of a task.
type TaskKind string

// The kinds of tasks. client.PendingItem uses the same values.
const (
	TaskActivity         TaskKind = "activity"
	TaskTimer            TaskKind = "timer"
	TaskSubOrchestration TaskKind = "sub_orchestration"
	// TaskDetachedOrchestration is an orchestration that was started with StartOrchestration. Its end is never
	// reported.
	TaskDetachedOrchestration TaskKind = "detached_orchestration"
	TaskExternalEvent         TaskKind = "external_event"
	// TaskSentEvent is an event that was sent to another instance, and TaskSentUpdate is such an update. They end with
	// the response of that instance, even if the code has cancelled the future.
	TaskSentEvent  TaskKind = "sent_event"
	TaskSentUpdate TaskKind = "sent_update"
	// TaskUpdate is the handler of an update, from the acceptance of the update.
	TaskUpdate TaskKind = "update"
)

// TaskOutcome describes how a task ended.
type TaskOutcome string

// The outcomes of tasks.
const (
	// TaskCompleted means that the task has a result, the timer fired, or the external event arrived.
	TaskCompleted TaskOutcome = "completed"
	TaskFailed    TaskOutcome = "failed"
	// TaskCancelled means that the code, a client or the end of the execution cancelled the task. With
	// WaitForCancellation, the outcome is TaskCancelled regardless of the result.
	TaskCancelled TaskOutcome = "cancelled"
)
