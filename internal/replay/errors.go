package replay

import (
	"fmt"
	"time"
)

// NondeterminismError says that an orchestration's code no longer takes the decisions that its history holds: it was
// changed in a way that running instances do not survive, or it depends on something that is not the same every time
// (the clock, a random number, the order of a map). The instance is not failed: it goes on once the code is mended.
type NondeterminismError struct {
	InstanceID  string
	ExecutionID string
	// EventID is the event of the history where the two part; where the history is over, its last one.
	EventID int64
	// Expected is what history holds there, Got what the code asked for.
	Expected, Got string
}

func (e *NondeterminismError) Error() string {
	return fmt.Sprintf("nondeterminism in instance %q (execution %s) at event #%d: history has %s, the code asked for %s",
		e.InstanceID, e.ExecutionID, e.EventID, e.Expected, e.Got)
}

// UnregisteredError says that an orchestration called something that its registry cannot name. The instance waits for
// code that registers it.
type UnregisteredError struct {
	InstanceID string
	// What is missing, and why it could not be found.
	What string
}

func (e *UnregisteredError) Error() string {
	return fmt.Sprintf("instance %q: %s", e.InstanceID, e.What)
}

// BlockedOutsideError says that an orchestration's code did not come back within the limit of a turn: it waits for
// something other than a future (a mutex, a channel, the network), or it runs without end.
type BlockedOutsideError struct {
	InstanceID string
	// Limit is how long the turn was given.
	Limit time.Duration
	// Stack is where the code was at that moment, as the runtime prints it.
	Stack string
}

func (e *BlockedOutsideError) Error() string {
	return fmt.Sprintf("instance %q: the orchestration did not come back within %v: it blocks on something that is not a future, or never ends:\n%s",
		e.InstanceID, e.Limit, e.Stack)
}

// ForeignGoroutineError says that an orchestration's context or future was used on a goroutine that is not the
// orchestration's own. The order of such calls is not in history. The goroutine that did it was ended.
type ForeignGoroutineError struct {
	InstanceID string
	// Stack is where the call was made.
	Stack string
	// Late says that the call was made when no turn was under way: the last one may be committed, without what was asked for.
	Late bool
}

func (e *ForeignGoroutineError) Error() string {
	return fmt.Sprintf("instance %q: an orchestration's context or future was used on a goroutine that is not the orchestration's:\n%s",
		e.InstanceID, e.Stack)
}
