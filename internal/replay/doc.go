// Package replay runs the turns of an orchestration. It rebuilds an execution from its history, applies new inputs one
// by one, and returns the decisions of the orchestration's code.
//
// The code of an orchestration runs on coroutines ([iter.Pull]). Only this package resumes them, one at a time, in an
// order that depends on nothing but the history. A coroutine that waits is parked. It stays parked between turns, so
// that a warm instance continues without replay, until [Instance.Close] unwinds it. On replay, every decision of the
// code must match the history. The first decision that does not match invalidates the instance, with a
// [NondeterminismError] that shows both sides.
//
// The engine makes decisions as well: it creates a timer and retries a child that failed. Such a decision follows the
// input that caused it, before the code receives the input, and must match the history too.
//
// User code may never return. Each turn therefore runs on its own goroutine, and a watchdog abandons a turn that takes
// too long. To end a failed turn, the engine never resumes its coroutines. It does not panic into user code, because
// user code may recover.
//
// An execution consists of parts. Each part has an owner, and only the owner changes it:
//
//   - life: the progress of the execution from its start to its end
//   - journal: the history, with a cursor over the replayed past and a draft of the events of the turn
//   - scheduler: the coroutines, the ready queue, and a gate that rejects other goroutines
//   - tasks: the open tasks, with the mailbox of external events and the awaited ends of cancelled tasks
//   - scopes: the tasks and waits that a cancellation ends
//   - documents and parking: large data that is stored elsewhere, and inputs that the code could not process
package replay
