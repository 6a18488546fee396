package replay

import (
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/perdure/perdure/history"
)

// Orchestration is code that can be replayed.
type Orchestration struct {
	Name, Version string
	// FailOnNondeterminism: code that differs from its history fails the instance, instead of blocking it until the code is mended.
	FailOnNondeterminism bool
	// Retention is how long an instance is kept after its end: 0 is the hub's setting, negative is for ever.
	Retention time.Duration
	// Body is the code: it runs on a coroutine of its own.
	Body func(*Context, json.RawMessage) Ending
}

// Ending is how a body ended.
type Ending struct {
	// Kind is OrchestrationCompleted, OrchestrationFailed, OrchestrationCancelled or OrchestrationContinuedAsNew. Only an instance whose
	// cancel was requested can end cancelled, with the reason and the message of that request.
	Kind history.Kind
	// Output is the result of a completed orchestration.
	Output json.RawMessage
	// Input is the next execution's, of one that continues as new.
	Input json.RawMessage
	// Error is why an orchestration failed.
	Error *history.Failure
}

// Options are what an instance knows about itself, and what it needs of its caller.
type Options struct {
	InstanceID, ExecutionID string
	// Logger is where the orchestration's log goes; nil is nowhere.
	Logger *slog.Logger
	// TurnLimit is how long Replay and Turn wait for the code; 0 is 10 seconds.
	TurnLimit time.Duration
	// ExactRetries records retry policies without their jitter: for tests of exact times.
	ExactRetries bool
	// BuildID names the code; empty is no build's. On replay, inputs that the same build decided on must match; Differences has those of other
	// builds that do not.
	BuildID string
	// SegmentOf returns the segment of the execution in which an event lies, or will lie if it is of the turn under way. Nil: large data of
	// external events is copied where it could be referred to.
	SegmentOf func(eventID int64) int64
	// Fetch returns the document that a reference is about. Its time does not count for TurnLimit, and its error ends the turn or the replay
	// with a *FetchError. It is called by one goroutine at a time, from within Replay and Turn.
	Fetch func(r history.Reference) (json.RawMessage, error)
	// Seals opens sealed payloads; nil: there are none. Its calls are like those of Fetch.
	Seals Seals
	// WaitEnds: turns say which waits for external events have ended.
	WaitEnds bool
	// LargePayloads: there is a store of large payloads. Turns record it, and a replay goes by what they have recorded.
	LargePayloads bool
}

// Seals opens the sealed payloads of an execution.
type Seals interface {
	// Open returns the document of a sealed payload, and Same reports whether a document is that of one. What lies in a store of ahead is likely to be wanted
	// next, and may be fetched with it.
	Open(of history.EventPayload, ahead []history.EventPayload) (json.RawMessage, error)
	Same(of history.EventPayload, doc json.RawMessage) (bool, error)
}

// defaultTurnLimit is far above what a turn of code that only decides takes, and a third of the inbox function's timeout (R19).
const defaultTurnLimit = 10 * time.Second

// Instance is one execution of an orchestration, held in memory. Its methods must not be called concurrently, except Close. An instance that
// returned an error is void: only Close may follow. Each instance needs Close.
type Instance struct {
	x     *execution
	limit time.Duration
	timer *time.Timer
	done  chan result
	last  result // of the last turn: the execution itself cannot be read while a turn that was given up may still run

	mu        sync.Mutex
	running   bool          // a turn's goroutine has the execution
	abandoned bool          // by the watchdog or by Close: the goroutine that has the execution unwinds it
	gone      chan struct{} // closed when all coroutines have ended
}

// New makes an instance with no history.
func New(o Orchestration, opts Options) *Instance {
	limit := opts.TurnLimit
	if limit <= 0 {
		limit = defaultTurnLimit
	}
	return &Instance{x: newExecution(o, opts), limit: limit, done: make(chan result, 1), gone: make(chan struct{})}
}

// Replay rebuilds the instance from committed events, from id 1 on. It may be called again with the events that follow. It keeps no reference to
// events, except to the payloads in them. Its errors are those of Turn, and one that names the event when there is a gap or when an input or a
// result is not inline.
func (i *Instance) Replay(events []history.Event) error {
	_, err := i.attempt(func() { i.x.replay(events) })
	return err
}

// Turn applies inputs, message by message, each input until the code can go no further, and returns what to commit. An input applies when it is
// the first outcome of a task that the orchestration scheduled, an external event of an id that this execution has not seen, the first request
// to cancel, or the order to terminate. Others are dropped. The first turn starts the body, before any input, unless it terminates the
// execution.
//
// These errors leave the instance void, with nothing to commit: *NondeterminismError (of Replay), *UnregisteredError, *BlockedOutsideError,
// *ForeignGoroutineError, *FetchError.
func (i *Instance) Turn(t Turn) (Outcome, error) {
	if i.last.ended {
		return Outcome{Consumed: len(t.Inputs), Ended: true}, nil
	}
	return i.attempt(func() { i.x.turn(&t) })
}

// OpenActivity reports whether the execution waits for an activity: it has neither settled nor been cancelled, not by a parked input
// either. ending is true of one that was cancelled, by the code or by an input that is parked, and whose end is waited for: it is not tried again.
func (i *Instance) OpenActivity(id int64) (open, ending bool) {
	t := i.x.tasks.open[id]
	if t == nil || t.kind != history.ActivityScheduled || t.done {
		return false, false
	}
	cancelled, settled := i.x.parking.settles(id)
	if settled || i.x.tasks.arrivals.has(id) {
		return false, false
	}

	open = !t.cancelled && !cancelled
	return open, !open && t.waits != waitsForNone
}

// Differences are the inputs that code of another build decided on, and that this code would not. It must not be called while a turn runs.
func (i *Instance) Differences() Differences { return i.x.journal.cursor.differing }

// Ended reports whether the execution is over.
func (i *Instance) Ended() bool { return i.last.ended }

// LastEventID is the id of the last event that was replayed or came out of a turn.
func (i *Instance) LastEventID() int64 { return i.last.lastID }

// Gone is closed when all coroutines have ended: of an instance that was given up, once its code has come back.
func (i *Instance) Gone() <-chan struct{} { return i.gone }

// Bytes is roughly what the instance takes in memory: the stacks of its coroutines, and what waits. What the code itself holds is not known.
func (i *Instance) Bytes() int { return i.last.bytes }
