// Package replay runs the turns of an orchestration: it rebuilds an execution from its history, applies new inputs one by one, and returns what
// the orchestration's code decided.
//
// The code of an orchestration runs on coroutines ([iter.Pull]) that are resumed only from here, one at a time, in an order that history alone
// determines. A coroutine that waits is parked. It stays parked between turns, so that a warm instance goes on without replay, until
// [Instance.Close] unwinds it. On replay every decision of the code must match history. The first that does not voids the instance with a
// [NondeterminismError] that shows both sides.
//
// The engine decides as well as the code: a child that failed is tried again after a timer. Such decisions follow the input that caused them,
// before the code learns of it, and must match history too.
//
// User code may never return: each turn runs on a goroutine of its own, and a watchdog gives up on it. A turn is voided by never resuming its
// coroutines, not by a panic into user code, which may recover.
//
// An execution is made of parts that each have an owner, which alone changes it:
//
//   - life: how far the execution has come, from its start to its end
//   - journal: its history, a cursor over the past that is replayed and a draft of what the turn adds
//   - scheduler: its coroutines, the ready queue, and a gate that keeps other goroutines out
//   - tasks: the open waits, with the mailbox of external events and the ends that are waited for
//   - scopes: what a cancel ends
//   - documents and parking: large data that lies elsewhere, and inputs that the code could not take
package replay
