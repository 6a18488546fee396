package coroutine

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"

	"github.com/perdure/perdure/internal/replay/stack"
)

// labelKey is the profiler label of the goroutines of an execution. Goroutines that the code starts inherit the label.
const labelKey = "perdure_execution"

// Label labels the calling goroutine as one of this execution, for Stacks.
func (s *Scheduler[W]) Label() {
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels(labelKey, s.options.Mark)))
}

// parkFrame is the frame of a parked coroutine in a profile.
const parkFrame = "coroutine.(*Scheduler[...]).Park"

// Stacks returns the stacks of the execution's goroutines that are not parked. It is slow, because it profiles all
// goroutines of the process.
func (s *Scheduler[W]) Stacks() string {
	var all, found bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
		return "stack not available: " + err.Error()
	}

	mark := fmt.Appendf(nil, "%q:%q", labelKey, s.options.Mark)
	for one := range bytes.SplitSeq(all.Bytes(), []byte("\n\n")) {
		if bytes.Contains(one, mark) && !bytes.Contains(one, []byte(parkFrame)) {
			found.Write(one)
			found.WriteByte('\n')
		}
	}

	if found.Len() == 0 {
		return "stack not found: the code may have changed its pprof labels"
	}
	return stack.Truncate(found.Bytes())
}
