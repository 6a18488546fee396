package replay

import (
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/faults"
)

// UnregisteredError is returned if an orchestration called something that its registry cannot name. The instance waits
// for code that registers the name.
type UnregisteredError struct {
	InstanceID string
	What       string // the missing name, and why it was not found
}

func (e *UnregisteredError) Error() string {
	return fmt.Sprintf("instance %q: %s", e.InstanceID, e.What)
}

// BlockedOutsideError is returned if the code of an orchestration did not return within the time limit of a turn. The
// code waits for something other than a future (a mutex, a channel, the network), or it runs endlessly.
type BlockedOutsideError struct {
	InstanceID string
	// Limit is the time limit of the turn.
	Limit time.Duration
	// Stack is the stack of the code when the limit was reached, in the format of the runtime.
	Stack string
}

func (e *BlockedOutsideError) Error() string {
	return fmt.Sprintf("instance %q: the orchestration did not return within %v: "+
		"it blocks on something that is not a future, or it never ends:\n%s",
		e.InstanceID, e.Limit, e.Stack)
}

// FaultKind implements faults.Fault.
func (*BlockedOutsideError) FaultKind() faults.Kind { return faults.Hang }
