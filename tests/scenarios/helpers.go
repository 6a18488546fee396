package scenarios

import (
	"errors"
	"fmt"
	"strings"

	"github.com/perdure/perdure"
)

// addHelpers adds orchestrations that scenarios call.
func addHelpers(r *perdure.Registry) {
	perdure.AddOrchestration(r, "Counts", chain)
	perdure.AddOrchestration(r, "Reserves", reserves)
	perdure.AddOrchestration(r, "TooSlow", tooSlow)
	perdure.AddOrchestration(r, "Panics", panics)
	perdure.AddOrchestration(r, "Waits", waits)
	perdure.AddOrchestration(r, "Sleeps", sleeps)
	perdure.AddOrchestration(r, "FlakyChild", flakyChild)
	perdure.AddOrchestration(r, "Counting", counting)
	perdure.AddOrchestration(r, "Hello-detached", hello)
	perdure.AddOrchestration(r, "Listens", words)
}

// waits is over when it is told so, at last.
func waits(ctx *perdure.OrchestrationContext, _ struct{}) (string, error) {
	ctx.SetCustomStatus("waiting")
	return perdure.WaitForExternalEvent[string](ctx, "go").Await(ctx)
}

// panicked is the part of a panic's message that is the same everywhere: what the runtime says without the stack.
func panicked(message string) string {
	line, _, _ := strings.Cut(message, "\n")
	line = strings.TrimPrefix(line, "runtime error: ")
	line, _, _ = strings.Cut(line, " with")
	return line
}

// typeOf is the type of an activity's or orchestration's failure, as it travelled.
func typeOf(err error) string {
	if failed, ok := errors.AsType[*perdure.ActivityError](err); ok {
		return failed.Type
	}
	if failed, ok := errors.AsType[*perdure.SubOrchestrationError](err); ok {
		return failed.Type
	}
	return fmt.Sprintf("%T", err)
}

// reasonOf is why something was cancelled.
func reasonOf(err error) perdure.CancelReason {
	if cancelled, ok := errors.AsType[*perdure.CancelledError](err); ok {
		return cancelled.Reason
	}
	return "not cancelled"
}
