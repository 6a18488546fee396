// Package replay runs the turns of an orchestration: it rebuilds an execution from its history, applies new inputs one by
// one, and tells what the orchestration's code decided.
//
// The code of an orchestration runs on coroutines ([iter.Pull]) that are resumed only from here, one at a time, in an order
// that history alone determines. A coroutine that waits is parked; it stays parked between turns, so that a warm instance
// goes on without replay, until [Instance.Close] unwinds it. While history lasts every decision of the code is held
// against it; the first that differs voids the instance with a [NondeterminismError] that tells both sides.
//
// Besides the code, the engine decides too: a child that failed is tried again after a timer. Such decisions follow the input
// that caused them, before the code hears of it, and are held against history as well.
//
// User code is not trusted to come back: each turn runs on a goroutine of its own and a watchdog gives up on it. A turn is
// voided by never resuming it, not by a panic into user code, which may recover.
package replay
