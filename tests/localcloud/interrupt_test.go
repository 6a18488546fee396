package localcloud_test

import (
	"context"
	"os/exec"
	"testing"
	"time"
)

// Python swallows what a signal's handler raises while an object is being deleted. A stop that came just then would be lost, and
// the cloud be killed after a while, with whatever it had started.
func TestAStopIsHeardAlsoWhileAnObjectIsDeleted(t *testing.T) {
	t.Parallel()
	const program = `
import os, signal, sys, time
import interrupt
class Stopped(interrupt.Interrupt): pass
class Deleted:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0) # by now the handler has run
interrupt.on([signal.SIGTERM], Stopped)
try:
    deleted = Deleted()
    del deleted
    time.sleep(60)
except Stopped:
    print("stopped", end="")
`
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	cmd := exec.CommandContext(ctx, "python3", "-c", program)
	cmd.Dir = "../../localstack"
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "stopped" {
		t.Errorf("%v: %s", err, out)
	}
}
