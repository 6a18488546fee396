package replay

import (
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/faults"
)

// Orchestration is code that this package can replay.
type Orchestration struct {
	Name, Version string
	// FailOnNondeterminism fails an instance whose code differs from its history. Otherwise the instance is blocked
	// until the code is fixed.
	FailOnNondeterminism bool
	// Retention is the time for which an ended instance is kept. 0 selects the hub's setting, and a negative value
	// means forever.
	Retention time.Duration
	// Body is the code. It runs on its own coroutine.
	Body func(*Context, json.RawMessage) Ending
}

// Ending is the result of a body.
type Ending struct {
	// Kind is OrchestrationCompleted, OrchestrationFailed, OrchestrationCancelled or OrchestrationContinuedAsNew. Only
	// an instance with a cancel request can end as cancelled, with the reason and the message of that request.
	Kind history.Kind
	// Output is the result of a completed orchestration.
	Output json.RawMessage
	// Input is the input of the next execution if the orchestration continues as new.
	Input json.RawMessage
	// Error is the failure of a failed orchestration.
	Error *history.Failure
}

// Options describe an instance and the functions that its caller provides.
type Options struct {
	InstanceID, ExecutionID string
	// Logger receives the log of the orchestration. Nil discards the log.
	Logger *slog.Logger
	// Faults observes calls of a foreign goroutine that are made between turns, so that no turn reports them. It may be
	// nil.
	Faults faults.Observer
	// TurnTimeout is the time that Replay and Turn wait for the code. 0 means 10 seconds.
	TurnTimeout time.Duration
	// ExactRetries records retry policies without their jitter, for tests of exact times.
	ExactRetries bool
	// BuildID names the code. It is empty if the code has no build ID. On replay, inputs that the same build recorded
	// must match. Differences reports inputs of other builds that do not match.
	BuildID string
	// SegmentOf returns the segment of the execution that contains an event, or that will contain it if the event
	// belongs to the running turn. If SegmentOf is nil, large data of external events is copied instead of referenced.
	SegmentOf func(eventID int64) int64
	// Fetch returns the document that a reference points to. Its time does not count towards TurnTimeout. An error of
	// Fetch ends the turn or the replay with a *FetchError. Replay and Turn call Fetch from one goroutine at a time.
	Fetch func(r history.Reference) (json.RawMessage, error)
	// Decoder decodes payloads. It is nil if no payload is encoded. It is called in the same way as Fetch.
	Decoder PayloadDecoder
	// WaitEnds makes turns return the waits for external events that ended.
	WaitEnds bool
	// LargePayloads is set if there is a payload store. Turns record the value, and a replay uses the recorded value.
	LargePayloads bool
}

// defaultTurnTimeout is a third of the inbox function's timeout (R19). Code that only makes decisions needs far less
// time.
const defaultTurnTimeout = 10 * time.Second

// Instance is one execution of an orchestration in memory. Its methods must not be called concurrently, except Close.
// An instance that returned an error is invalid: only Close may follow. Each instance requires Close.
type Instance struct {
	x     *execution
	limit time.Duration
	timer *time.Timer
	done  chan result
	last  result // of the last turn, because an abandoned turn may still use the execution

	mu        sync.Mutex
	running   bool          // a turn's goroutine owns the execution
	abandoned bool          // by the watchdog or Close; the goroutine that owns the execution unwinds it
	gone      chan struct{} // closed when all coroutines have ended
}

// New returns an instance without a history.
func New(o Orchestration, opts Options) *Instance {
	limit := opts.TurnTimeout
	if limit <= 0 {
		limit = defaultTurnTimeout
	}
	return &Instance{x: newExecution(o, &opts), limit: limit, done: make(chan result, 1), gone: make(chan struct{})}
}

// Replay rebuilds the instance from committed events, starting with event 1. Later calls continue with the events that
// follow. Replay keeps references to the payloads of events, but not to the events. It returns the errors of Turn. It
// also returns an error with the event's ID if an event is missing, or if an input or a result is not inline.
func (i *Instance) Replay(events []history.Event) error {
	_, err := i.attempt(func() { replayRun{i.x, &i.x.journal.Cursor}.run(events) })
	return err
}

// Turn applies inputs, message by message, and returns the events to commit. After each input, it runs the code until
// the code waits. Turn applies the following inputs, and drops all others:
//
//   - an external event or an update whose ID is new to this execution
//   - a request of another orchestration to wait for an update
//   - the first outcome of a task that the orchestration scheduled
//   - a request to cancel, or a new attempt of, an activity that has neither settled nor been cancelled
//   - the first request to cancel the execution
//   - a request to terminate the execution
//
// The first turn starts the body before it applies any input, unless an input terminates the execution.
//
// These errors invalidate the instance, with nothing to commit: *NondeterminismError (from Replay), *UnregisteredError,
// *BlockedOutsideError, *ForeignGoroutineError, *FetchError.
func (i *Instance) Turn(t Turn) (Outcome, error) {
	if i.last.ended {
		return Outcome{Consumed: len(t.Inputs), Ended: true}, nil
	}
	return i.attempt(func() { turnRun{i.x, &t}.run() })
}

// Arrive adds outcomes of inline activities that were committed behind the events of the last turn. The next turn
// starts with them.
func (i *Instance) Arrive(outcomes []history.Event) {
	for n := range outcomes {
		i.x.tasks.Arrivals.Add(&outcomes[n])
		i.last.lastID = i.x.journal.Cursor.Assign()
	}
}

// Wakes reports whether the code would continue if the tasks for which settled returns true were settled. Code
// continues after one of the tasks that it races, or after the last of the tasks that it awaits together.
func (i *Instance) Wakes(settled func(id int64) bool) bool {
	return i.x.scheduler.WouldWake(func(t *Task) bool { return t.IsDone() || settled(t.ID()) })
}

// OpenActivity reports the state of an activity. open is true if the execution waits for the activity: it has not
// settled, and neither the code nor a parked input has cancelled it. ending is true if the activity was cancelled and
// the execution waits for its end. Such an activity is not retried.
func (i *Instance) OpenActivity(id int64) (open, ending bool) {
	open, cancelled, awaited := i.x.tasks.Activity(id)
	cancelParked, settleParked := i.x.parked.settles(id)
	switch {
	case settleParked:
		return false, false
	case open && !cancelParked:
		return true, false
	default:
		return false, (open || cancelled) && awaited
	}
}

// Differences returns the inputs of this code that differ from the inputs recorded by another build. Do not call it
// while a turn runs.
func (i *Instance) Differences() Differences { return i.x.journal.Cursor.Differences() }

// Ended reports whether the execution has ended.
func (i *Instance) Ended() bool { return i.last.ended }

// LastEventID returns the ID of the last event that was replayed or that a turn returned.
func (i *Instance) LastEventID() int64 { return i.last.lastID }

// Gone returns a channel that is closed when all coroutines have ended. For an abandoned instance, this happens after
// its code has returned.
func (i *Instance) Gone() <-chan struct{} { return i.gone }

// Bytes returns the approximate memory of the instance: the stacks of its coroutines, and its pending inputs. It does
// not include values of the code.
func (i *Instance) Bytes() int { return i.last.bytes }
