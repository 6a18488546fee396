package perdure

import (
	"context"

	"github.com/perdure/perdure/history"
)

// Interceptor is called around what a program does for a task hub: for tracing, logging and measuring. Each of its functions is
// optional. It is configured where the program is put together: lambdahandler.WithInterceptors, the options of package dispatch,
// client.WithInterceptors. Of several interceptors the first is the outermost.
//
// A function that has a next calls it once, on the goroutine that it was called on, with ctx or a context derived from it, and returns after next has
// returned. Whatever it does, the work is done exactly once: an interceptor that does not call next has the work done behind it, a second
// call of next returns what the first did, and a panic of the interceptor is logged. It must not call runtime.Goexit, and it must
// come back: around a turn it has no limit but the invocation's, and an instance whose turns take the process with them again and
// again is parked as poison (the diagnosis names the interceptors, which are left out of that turn), so whatever it waits for, an exporter above all, needs a timeout. It cannot change an outcome; the context that it passes on is what the work is done with: a deadline or a cancel in it ends that work early.
//
// Interceptors of turns, and of their tasks, run outside the orchestration's code: what they do, read or put into the context never reaches it, so that
// replay does not depend on them. They are called on many goroutines at once. Without interceptors nothing is allocated or called.
type Interceptor struct {
	// Turn is called around each turn: from before the orchestration's code runs on until what it decided is committed and sent. It is called
	// once for each try, and never for a replay. A turn that is tried again has the same ExecutionID and Sequence: after a crash, a
	// conflict with another process, or with fewer messages where all were too large for one commit. At most one try of a Sequence is
	// Committed as far as its process knows; of a try whose process died after the commit no interceptor hears the end.
	Turn func(ctx context.Context, t TurnInfo, next func(context.Context) TurnResult)

	// Tasks is called once for each turn that is committed and has begun or ended tasks, with those: activities, inline ones too, timers, other orchestrations,
	// external events, calls and updates. It comes after all is sent that the turn has decided, or could not be sent and is sent again with the next delivery, within Turn, with the context that Turn has passed on; for a replay
	// it is never called, nor for a try that was not committed. What it is told is of history: a turn that takes the process with it after the commit,
	// in what it sends or in this function, is not told of again. So a task is told to have begun once at most, and to have ended once at most.
	//
	// There is no next, and nothing waits for what it does but the rest of its invocation. It is told of a turn's tasks together, as many as there are: some 200
	// bytes each, beside the event that the turn holds anyway. Where there is none, nothing is computed; where there is one, what is open is kept with
	// each instance in memory, some 200 bytes a task, and counts for the cache.
	//
	// When a wait for an external event ends is known to the code alone. Where no code takes part in an end, such as that of an instance which is terminated while it is
	// blocked or paused, nothing is said of such waits.
	Tasks func(ctx context.Context, t TurnTasks)

	// Activity is called around each run of an activity's code: once for each attempt, and again for each delivery that runs it again. It is not called
	// for what is not run: activities that were cancelled before they began, or that this build does not have. next returns when the
	// code does, which may be after the attempt was given up for its time: the limits of an attempt hold for its interceptors, too.
	Activity func(ctx context.Context, a ActivityInfo, next func(context.Context) ActivityResult)

	// ClientCall is called around those calls of a client.Client that ClientCall names, once their arguments have been checked. Reads,
	// renewals of locks and what operators do about dead letters are not intercepted.
	ClientCall func(ctx context.Context, c ClientCall, next func(context.Context) error)
}

// TurnInfo says which turn is run.
type TurnInfo struct {
	InstanceID, ExecutionID string
	// Name and Version are those of the orchestration. Version is empty where this build cannot run it.
	Name, Version string
	// Sequence numbers the turns of an execution from 1.
	Sequence int64
	// Messages is how many messages the turn may take: 0 for the first turn of an execution that continues as new.
	Messages int
	// Replayed reports that the orchestration was rebuilt from its history for this turn, or for one before it in the same
	// invocation, rather than found in memory.
	Replayed bool
	// TraceParents are the trace contexts that its messages came with, if any; Awaited are the Sequences of the turns that scheduled what
	// they bring: activities, timers, sub-orchestrations; 0 is the start. At most 32 of each, in the order of the messages and of the turns.
	TraceParents []string
	Awaited      []int64
}

// TurnResult is what became of a turn.
type TurnResult struct {
	// Committed reports that the turn is history; with Err not all is sent that it decided, which is sent again. Without it and without Err nothing had to be
	// decided, or the turn is tried again at once.
	Committed bool
	// Events is how many events it added to the history.
	Events int
	// Status is the instance's once the turn is committed; empty where it is not.
	Status history.RuntimeStatus
	// Failure is why the orchestration has failed, or why it is blocked; nil otherwise.
	Failure *history.Failure
	// Err is why the turn could not be run or committed. Its messages are delivered again.
	Err error
}

// ActivityResult is how a run of an activity's code ended.
type ActivityResult struct {
	// Failure is nil for success. Of a failure that the activity's policy tries again, too, it is the failure.
	Failure *history.Failure
	// Pending reports that the code has returned ErrPending: the attempt is completed from outside.
	Pending bool
}

// ClientCall says which call of a client.Client is made.
type ClientCall struct {
	// Operation is the name of the method: Start, Raise, Update, Cancel, CancelActivity, Terminate, Pause, Resume, Purge, Bulk, CancelJob,
	// Complete or Fail. Of an Update it is the sending, and not the wait for its answer.
	Operation string
	// InstanceID is empty for Bulk and CancelJob.
	InstanceID string
	// Name is that of the orchestration to start, of the event to raise or of the update; empty otherwise.
	Name string
}
