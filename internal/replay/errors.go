package replay

import (
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/faults"
	"github.com/perdure/perdure/internal/replay/journal"
	"github.com/perdure/perdure/internal/replay/payloads"
)

// NondeterminismError is returned if the code of an orchestration makes other decisions than its history records.
type NondeterminismError = journal.NondeterminismError

// FetchError is returned if a document could not be read from the place that a reference points to.
type FetchError = payloads.FetchError

// UnregisteredError is returned if an orchestration called something that its registry cannot name. The instance waits
// for code that registers the name.
type UnregisteredError struct {
	InstanceID string
	What       string // the missing name, and why it was not found
}

func (e *UnregisteredError) Error() string {
	return fmt.Sprintf("instance %q: %s", e.InstanceID, e.What)
}

// BlockedOutsideError is returned if the code of an orchestration did not return within the time limit of a turn. It
// waits for something other than a future (a mutex, a channel, the network), or it runs endlessly.
type BlockedOutsideError struct {
	InstanceID string
	// Limit is the time limit of the turn.
	Limit time.Duration
	// Stack is the stack of the code when the limit was reached, in the format of the runtime.
	Stack string
}

func (e *BlockedOutsideError) Error() string {
	return fmt.Sprintf("instance %q: the orchestration did not return within %v: it blocks on something that is not a future, or it never ends:\n%s",
		e.InstanceID, e.Limit, e.Stack)
}

// FaultKind implements faults.Fault.
func (*BlockedOutsideError) FaultKind() faults.Kind { return faults.Hang }

// ForeignGoroutineError is returned if an orchestration's context or future was used on a goroutine that does not
// belong to the orchestration. The history does not record the order of such calls. The engine ended the calling
// goroutine.
type ForeignGoroutineError struct {
	InstanceID string
	// Stack is the stack of the call.
	Stack string
	// Late is set if no turn was running at the time of the call. The last turn may be committed, without the requested
	// decision.
	Late bool
}

func (e *ForeignGoroutineError) Error() string {
	return fmt.Sprintf("instance %q: an orchestration's context or future was used on a goroutine that does not belong to the orchestration:\n%s",
		e.InstanceID, e.Stack)
}

// FaultKind implements faults.Fault.
func (*ForeignGoroutineError) FaultKind() faults.Kind { return faults.ForeignGoroutine }
