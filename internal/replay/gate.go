package replay

import "sync/atomic"

// The modes of an execution.
const (
	resting   int32 = iota // no turn is under way: none of the orchestration's code may run
	live                   // a turn is under way
	replaying              // history is being replayed
	abandoned              // the instance was given up while its code ran: the code parks at its next call
	unwinding              // the coroutines end at their next call
	asking                 // a query's handler or an update's validator runs: nothing may be decided or waited for
)

// gate holds the mode of an execution, the first call that a foreign goroutine made, and the first that a query's handler must not make. It is the part of an execution that any goroutine may
// use at any time: the one that runs the turn, the watchdog, Close, and those that the orchestration's code started itself.
type gate struct {
	mode    atomic.Int32
	foreign atomic.Pointer[ForeignGoroutineError]
	misused atomic.Pointer[QueryMisuseError]
}

// startTurn lets the code run.
func (g *gate) startTurn() { g.mode.CompareAndSwap(resting, live) }

// startReplay makes the turn under way a replay.
func (g *gate) startReplay() { g.mode.CompareAndSwap(live, replaying) }

// startQuery makes the turn under way a query.
func (g *gate) startQuery() { g.mode.CompareAndSwap(live, asking) }

// endQuery makes a query the turn again that it was asked in.
func (g *gate) endQuery() { g.mode.CompareAndSwap(asking, live) }

// takeMisuse returns what misusedBy does, and forgets it.
func (g *gate) takeMisuse() *QueryMisuseError { return g.misused.Swap(nil) }

// endTurn ends a turn, a replay or a query. An execution that was abandoned meanwhile stays abandoned.
func (g *gate) endTurn() {
	for _, mode := range []int32{live, replaying, asking} {
		if g.mode.CompareAndSwap(mode, resting) {
			return
		}
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

// recordMisuse records a call that a query's handler must not make.
func (g *gate) recordMisuse(e *QueryMisuseError) { g.misused.CompareAndSwap(nil, e) }

// misusedBy returns the first call that a query's handler must not have made; nil when there was none.
func (g *gate) misusedBy() *QueryMisuseError { return g.misused.Load() }
