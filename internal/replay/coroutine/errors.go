package coroutine

import (
	"fmt"

	"github.com/perdure/perdure/internal/faults"
)

// ForeignGoroutineError is returned if an orchestration's context or future was used on a goroutine that does not
// belong to the orchestration. The history does not record the order of such calls. The engine ended the calling
// goroutine.
type ForeignGoroutineError struct {
	InstanceID string
	// Stack is the stack of the call.
	Stack string
	// Late is set if no turn was running at the time of the call. The last turn may be committed without the requested
	// decision.
	Late bool
}

func (e *ForeignGoroutineError) Error() string {
	return fmt.Sprintf("instance %q: an orchestration's context or future was used on a goroutine "+
		"that does not belong to the orchestration:\n%s",
		e.InstanceID, e.Stack)
}

// FaultKind implements faults.Fault.
func (*ForeignGoroutineError) FaultKind() faults.Kind { return faults.ForeignGoroutine }

// QueryMisuseError is returned if a query handler used the context or a future of its orchestration to decide or wait.
type QueryMisuseError struct {
	InstanceID string
	// Stack is the stack of the call.
	Stack string
}

func (e *QueryMisuseError) Error() string {
	return fmt.Sprintf("instance %q: a query handler used the orchestration's context to decide or wait:\n%s",
		e.InstanceID, e.Stack)
}
