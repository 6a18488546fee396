package replay

import (
	"fmt"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/stack"
)

// Panic is a panic value with a known failure. An orchestration that panics with it fails with this failure instead of
// history.TypePanic.
type Panic interface{ Failure() *history.Failure }

// Panicked returns the failure of code that panicked with r. Call it while recovering: it records the stack of the
// panic.
func Panicked(r any) *history.Failure {
	if p, ok := r.(Panic); ok {
		return p.Failure()
	}
	return &history.Failure{Type: history.TypePanic, Message: stack.Truncate(fmt.Append(nil, r)) + "\n\n" + stack.Current()}
}

// exited returns the failure of code that ended its goroutine.
func exited() *history.Failure {
	return &history.Failure{
		Type:    history.TypeGoexit,
		Message: "the orchestration called runtime.Goexit instead of returning (testing.T's FailNow, Fatal and Skip do)",
	}
}
