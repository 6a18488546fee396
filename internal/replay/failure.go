package replay

import (
	"fmt"

	"github.com/perdure/perdure/history"
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
	return &history.Failure{Type: history.TypePanic, Message: bounded(fmt.Append(nil, r)) + "\n\n" + stack()}
}

// exited returns the failure of code that ended its goroutine.
func exited() *history.Failure {
	return &history.Failure{
		Type:    history.TypeGoexit,
		Message: "the orchestration called runtime.Goexit instead of returning (testing.T's FailNow, Fatal and Skip do)",
	}
}
