package perdure

import (
	"time"

	"github.com/perdure/perdure/history"
)

// TurnTasks are the tasks that a turn scheduled and ended. The interceptor owns the slices and their contents.
type TurnTasks struct {
	InstanceID, ExecutionID string
	// Name is the name of the orchestration.
	Name string
	// Sequence is the number of the turn in its execution, from 1.
	Sequence int64
	// Scheduled are the tasks that the turn scheduled, in the order of the calls.
	Scheduled []TaskInfo
	// Ended are the tasks that ended in the turn, including tasks that it scheduled. Tasks whose end is an event of the
	// history come first, in the order of the history.
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
	// ScheduledAt is the time of the turn that scheduled the task, and ScheduledInTurn its Sequence. ScheduledInTurn is
	// 0 if a restart from an event copied the task.
	ScheduledAt     time.Time
	ScheduledInTurn int64
	// TraceParent is the trace context of the turn that scheduled the task, in the form of TraceParentFrom. It is empty
	// if the turn was not traced.
	TraceParent string
	// DueAt is when a timer fires.
	DueAt time.Time

	// Outcome is how the task ended. It is empty in TurnTasks.Scheduled. EndedAt is the time of the turn that processed
	// the end, or for an inline activity the time of its outcome.
	Outcome TaskOutcome
	EndedAt time.Time
	// Attempt is the number of attempts that an activity had. For another orchestration that is scheduled, it is the
	// number of the attempt.
	Attempt int
	// Failure is the failure of the task, or nil. Its details can be encoded by a codec.
	Failure *history.Failure
	// Reason is why the task was cancelled: a CancelReason, including the reasons for the end of the execution
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
	// TaskSentEvent is an event that was sent to another instance, and TaskSentUpdate an update. They end with the
	// response of that instance, even if the code has cancelled the future.
	TaskSentEvent  TaskKind = "sent_event"
	TaskSentUpdate TaskKind = "sent_update"
	// TaskUpdate is the handler of an update, from the acceptance of the update.
	TaskUpdate TaskKind = "update"
)

// TaskOutcome is how a task ended.
type TaskOutcome string

// The ends of tasks.
const (
	// TaskCompleted means that the task has a result, the timer fired, or the external event arrived.
	TaskCompleted TaskOutcome = "completed"
	TaskFailed    TaskOutcome = "failed"
	// TaskCancelled means that the code, a client or the end of the execution cancelled the task. With
	// WaitForCancellation, it applies regardless of the result.
	TaskCancelled TaskOutcome = "cancelled"
)
