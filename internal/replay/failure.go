package replay

import (
	"fmt"

	"github.com/perdure/perdure/history"
)

// panicked is the failure of code that panicked with r. It is called while recovering, so that the stack is that of the panic.
func panicked(r any) *history.Failure {
	return &history.Failure{Type: history.TypePanic, Message: bounded(fmt.Append(nil, r)) + "\n\n" + stack()}
}

// exited is the failure of code that ended its goroutine.
func exited() *history.Failure {
	return &history.Failure{
		Type:    history.TypeGoexit,
		Message: "the orchestration called runtime.Goexit instead of returning (testing.T's FailNow, Fatal and Skip do)",
	}
}
