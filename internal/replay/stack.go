package replay

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"

	"github.com/perdure/perdure/internal/replay/stack"
)

// labelKey marks the goroutines of an execution in profiles, where the watchdog finds them. A goroutine that the code starts inherits the label.
const labelKey = "perdure_execution"

// label marks the calling goroutine, and those that it starts.
func (s *scheduler) label() {
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels(labelKey, s.mark)))
}

// where returns the stacks of the execution's goroutines that are not parked. It looks at all goroutines, which is slow: for the watchdog only.
func (s *scheduler) where() string {
	var all, found bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
		return "its stack is not to be had: " + err.Error()
	}

	mark := fmt.Appendf(nil, "%q:%q", labelKey, s.mark)
	for one := range bytes.SplitSeq(all.Bytes(), []byte("\n\n")) {
		if bytes.Contains(one, mark) && !bytes.Contains(one, []byte("replay.(*scheduler).park")) {
			found.Write(one)
			found.WriteByte('\n')
		}
	}

	if found.Len() == 0 {
		return "its stack was not found: did it change its pprof labels?"
	}
	return stack.Truncate(found.Bytes())
}
