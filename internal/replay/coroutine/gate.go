package coroutine

import "sync/atomic"

// Mode is the mode of an execution.
type Mode int32

// The modes of an execution.
const (
	// BetweenTurns means that no turn is running. No code of the orchestration may run.
	BetweenTurns Mode = iota
	// Live means that a turn is running.
	Live
	// Replaying means that the history is being replayed.
	Replaying
	// Abandoned means that the instance was abandoned while its code ran. The code parks at its next call.
	Abandoned
	// Unwinding means that the coroutines end at their next call.
	Unwinding
	// Querying means that the handler of a query or the validator of an update runs. It must not decide or wait.
	Querying
)

// Gate holds the mode of an execution and the first forbidden calls. It is safe for concurrent use by the goroutine
// that runs the turn, the watchdog, Close, and goroutines that the code of the orchestration has started.
type Gate struct {
	mode    atomic.Int32
	foreign atomic.Pointer[ForeignGoroutineError]
	misused atomic.Pointer[QueryMisuseError]
}

func (g *Gate) change(from, to Mode) bool { return g.mode.CompareAndSwap(int32(from), int32(to)) }

// StartTurn lets the code run.
func (g *Gate) StartTurn() { g.change(BetweenTurns, Live) }

// StartReplay makes the running turn a replay.
func (g *Gate) StartReplay() { g.change(Live, Replaying) }

// StartQuery makes the running turn a query.
func (g *Gate) StartQuery() { g.change(Live, Querying) }

// EndQuery returns from a query to the turn.
func (g *Gate) EndQuery() { g.change(Querying, Live) }

// EndTurn ends a turn, a replay or a query. An abandoned execution stays abandoned.
func (g *Gate) EndTurn() {
	for _, mode := range []Mode{Live, Replaying, Querying} {
		if g.change(mode, BetweenTurns) {
			return
		}
	}
}

// Abandon makes the code park at its next call.
func (g *Gate) Abandon() { g.mode.Store(int32(Abandoned)) }

// unwind makes each coroutine end at its next call.
func (g *Gate) unwind() { g.mode.Store(int32(Unwinding)) }

// Mode returns the mode.
func (g *Gate) Mode() Mode { return Mode(g.mode.Load()) }

// Is reports whether the execution is in a mode.
func (g *Gate) Is(mode Mode) bool { return g.Mode() == mode }

// recordForeign records a call of a foreign goroutine. It reports whether the call is the first one.
func (g *Gate) recordForeign(e *ForeignGoroutineError) (first bool) {
	return g.foreign.CompareAndSwap(nil, e)
}

// ForeignCall returns the first call of a foreign goroutine, or nil.
func (g *Gate) ForeignCall() *ForeignGoroutineError { return g.foreign.Load() }

// recordMisuse records a call that a query handler must not make.
func (g *Gate) recordMisuse(e *QueryMisuseError) { g.misused.CompareAndSwap(nil, e) }

// Misuse returns the first forbidden call of a query handler, or nil.
func (g *Gate) Misuse() *QueryMisuseError { return g.misused.Load() }

// TakeMisuse is like Misuse and resets it.
func (g *Gate) TakeMisuse() *QueryMisuseError { return g.misused.Swap(nil) }
