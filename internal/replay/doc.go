// Package replay runs the turns of an orchestration. It rebuilds an execution from its history, applies new inputs one
// by one, and returns the decisions of the orchestration's code.
//
// On replay, every decision of the code must match the history. The first decision that does not match invalidates the
// instance, with a [NondeterminismError] that shows both sides. The engine makes decisions as well: it creates a timer
// and retries a failed child. The engine records such a decision after the input that caused it, before the code
// receives the input. The decision must also match the history.
//
// A warm instance stays parked between turns and continues without replay, until [Instance.Close] unwinds it.
//
// User code may never return. Each turn therefore runs on its own goroutine, and a watchdog abandons a turn that takes
// too long. The engine ends a failed turn by not resuming its coroutines. It does not panic in user code, because user
// code may recover.
//
// The packages below this one hold the parts of an execution:
//
//   - coroutine: the coroutines, the ready queue, and a gate that rejects other goroutines
//   - journal: the history, with a cursor over the replayed past and a draft of the events of the turn
//   - tasks: the open tasks, the scopes that cancel them, and the waits of coroutines
//   - mailbox: external events and the tasks that wait for them
//   - payloads: data that is stored at another position of the history or in a payload store
//   - identity, retry, stack: random numbers, retry policies, stacks of user code
package replay
