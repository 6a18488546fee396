package replay

import "sync/atomic"

// The modes of an execution.
const (
	resting   int32 = iota // no turn is under way: none of the orchestration's code may run
	live                   // a turn is under way
	replaying              // history is being replayed
	abandoned              // the instance was given up while its code ran: the code parks at its next call
	unwinding              // the coroutines end at their next call
)

// gate holds the mode of an execution, and the first call that a foreign goroutine made. It is the part of an execution that any goroutine may
// use at any time: the one that runs the turn, the watchdog, Close, and those that the orchestration's code started itself.
type gate struct {
	mode    atomic.Int32
	foreign atomic.Pointer[ForeignGoroutineError]
}

// startTurn lets the code run.
func (g *gate) startTurn() { g.mode.CompareAndSwap(resting, live) }

// startReplay makes the turn under way a replay.
func (g *gate) startReplay() { g.mode.CompareAndSwap(live, replaying) }

// endTurn ends a turn or a replay. An execution that was abandoned meanwhile stays abandoned.
func (g *gate) endTurn() {
	if !g.mode.CompareAndSwap(live, resting) {
		g.mode.CompareAndSwap(replaying, resting)
	}
}

// abandon has the code park at its next call.
func (g *gate) abandon() { g.mode.Store(abandoned) }

// unwind has each coroutine end at its next call.
func (g *gate) unwind() { g.mode.Store(unwinding) }

// state returns the mode.
func (g *gate) state() int32 { return g.mode.Load() }

// is reports whether the execution is in a mode.
func (g *gate) is(mode int32) bool { return g.state() == mode }

// recordForeign records a call of a foreign goroutine. It reports whether it is the first.
func (g *gate) recordForeign(e *ForeignGoroutineError) (first bool) {
	return g.foreign.CompareAndSwap(nil, e)
}

// foreignCall returns the first call of a foreign goroutine; nil when there was none.
func (g *gate) foreignCall() *ForeignGoroutineError { return g.foreign.Load() }
