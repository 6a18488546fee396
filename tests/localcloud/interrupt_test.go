package localcloud_test

import (
	"context"
	"os/exec"
	"testing"
	"time"
)

// Python ignores exceptions of a signal handler during a finalizer or the implicit close of a file. A stop signal at
// this moment would be lost, and the cloud and its child processes would be killed later.
func TestInterrupt_signalDuringFinalizer_stopsAndCleansUp(t *testing.T) {
	t.Parallel()
	for where, class := range map[string]string{
		"nowhere": "class Deleted: pass\nstop()",
		"while an object is deleted": `
class Deleted:
    def __del__(self): stop()`,
		"while an open file is closed": `
class Deleted(io.RawIOBase):
    def close(self):
        if not self.closed: stop()
        super().close()`,
	} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			program := `
import io, os, signal, sys, time
import interrupt
class Stopped(interrupt.Interrupt): pass
def stop():
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0) # by now the handler has run
def work():
    try:
        exec(` + "'''" + class + "'''" + `, globals())
        deleted = Deleted()
        del deleted
        time.sleep(60)
    finally:
        time.sleep(0.2) # cleaning up is not interrupted
        print("cleaned up,", end=" ")
interrupt.on([signal.SIGTERM], Stopped)
try:
    work()
except Stopped:
    print("stopped", end="")
finally:
    interrupt.settle()
`
			ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
			defer stop()
			cmd := exec.CommandContext(ctx, "python3", "-c", program)
			cmd.Dir = "../../localstack"
			if out, err := cmd.CombinedOutput(); err != nil || string(out) != "cleaned up, stopped" {
				t.Errorf("got error %v, output %s", err, out)
			}
		})
	}
}
