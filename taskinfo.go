package perdure

import (
	"time"

	"github.com/perdure/perdure/history"
)

// TurnTasks are what a turn has begun and ended. Its slices, and all that is in them, are the interceptor's: nothing else refers to them.
type TurnTasks struct {
	InstanceID, ExecutionID string
	// Name is that of the orchestration.
	Name string
	// Sequence numbers the turns of an execution from 1.
	Sequence int64
	// Begun are the tasks that the turn has begun, in the order in which the code asked for them.
	Begun []TaskInfo
	// Ended are those that have ended in it, what began in the same turn too. First come those whose end is an event of history, in the order of history.
	Ended []TaskInfo
}

// TaskInfo is something that an orchestration waits for, or may: an activity, a timer, another orchestration, an external event, an answer; or the
// handler of an update. What runs in the code alone is none: a scope, a coroutine, an item of Map, a side effect.
type TaskInfo struct {
	// ID is the id of the event that began it, which is unique in its execution.
	ID   int64
	Kind TaskKind
	// Name is the name of the activity, the orchestration, the event or the update, or that of a timer which was given one.
	Name string
	// InstanceID is the instance of another orchestration, or the one that an event or an update was sent to.
	InstanceID string
	// BegunAt is the time of the turn that began it, BegunIn its Sequence: 0 where a restart from an event took it over.
	BegunAt time.Time
	BegunIn int64
	// TraceParent is the trace context of the turn that began it, as TraceParentFrom returns one; empty where that was not traced.
	TraceParent string
	// DueAt is when a timer fires.
	DueAt time.Time

	// End is how it has ended; empty among those that a turn has begun. EndedAt is the time of the turn that took its end, which may have come before and waited.
	// The outcome of an inline activity has a time of its own.
	End     TaskEnd
	EndedAt time.Time
	// Attempt is how many attempts an activity has had, as its outcome says; of another orchestration that begins, which attempt it is.
	Attempt int
	// Failure is what it has failed with. Its details may be sealed by a codec.
	Failure *history.Failure
	// Reason is why it was cancelled: a CancelReason, or that of the end of its execution ("orchestration_terminal_…").
	Reason string
}

// TaskKind is what a task is.
type TaskKind string

// The kinds of tasks. They are those of client.PendingItem.
const (
	TaskActivity         TaskKind = "activity"
	TaskTimer            TaskKind = "timer"
	TaskSubOrchestration TaskKind = "sub_orchestration"
	// TaskDetachedOrchestration is one that StartOrchestration has started. It begins, and nobody hears its end.
	TaskDetachedOrchestration TaskKind = "detached_orchestration"
	TaskExternalEvent         TaskKind = "external_event"
	// TaskSentEvent is an event for another instance, TaskSentUpdate a call to one. They end with the answer, also where the code has given that up.
	TaskSentEvent  TaskKind = "sent_event"
	TaskSentUpdate TaskKind = "sent_update"
	// TaskUpdate is the handler of an update, from when that is accepted.
	TaskUpdate TaskKind = "update"
)

// TaskEnd is how a task has ended.
type TaskEnd string

// The ends of tasks.
const (
	// TaskCompleted: it has a result, a timer has fired, an external event has come.
	TaskCompleted TaskEnd = "completed"
	TaskFailed    TaskEnd = "failed"
	// TaskCancelled: the code, somebody, or the end of the execution has cancelled it. One whose end was waited for is so whatever it came to.
	TaskCancelled TaskEnd = "cancelled"
)
