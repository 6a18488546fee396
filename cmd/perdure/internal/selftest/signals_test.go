package selftest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
)

//nolint:paralleltest // the signal reaches all running commands
func TestCommand_terminalCloses_resourcesAreRemoved(t *testing.T) {
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP) // nohup, which may run the tests, ignores it
	defer signal.Stop(caught)
	h := &tool{world: newWorld(t)}
	h.test = func(ctx context.Context, d *deployed, _ *Report) error {
		h.tested = d
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Signal(syscall.SIGHUP)
		}
		if err != nil {
			return err
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}
	code, err := h.exec(t, false, "", "--yes")
	if code != cli.CodeError || err.Error() != "interrupted; everything was removed" || len(h.left()) > 0 || h.tested == nil {
		t.Errorf("got %d, %v, left %v", code, err, h.left())
	}
}

// The first Ctrl-C also ends tee, which reads the progress. The test runs itself with such a standard error.
func TestCommand_progressReaderEnds_resourcesAreRemoved(t *testing.T) {
	t.Parallel()
	const variable = "PERDURE_TEST_CLOSED_PIPE"
	if os.Getenv(variable) != "" {
		h := &tool{world: newWorld(t)}
		h.progress = os.Stderr
		code, err := h.exec(t, false, "", "--yes")
		fmt.Printf("exit code %d, %v, left %v\n", code, err, h.left())
		return
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+t.Name()+"$")
	var out bytes.Buffer
	child.Env, child.Stdout, child.Stderr = append(os.Environ(), variable+"=1"), &out, w
	err = child.Run()
	_ = w.Close()
	if err != nil || !strings.Contains(out.String(), "exit code 0, <nil>, left []\n") {
		t.Errorf("got %v, printed %s", err, out.String())
	}
}
