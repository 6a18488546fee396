package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func goBuild(ctx context.Context, out, pkg string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", out, pkg)
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

// perdure runs the command-line tool.
func perdure(tb testing.TB, args ...string) (stdout string, exit int) {
	tb.Helper()
	var out, complaints bytes.Buffer
	cmd := exec.CommandContext(tb.Context(), hub.perdure, args...)
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err := cmd.Run()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		tb.Logf("perdure %s: %s", strings.Join(args, " "), complaints.String())
		return out.String(), failed.ExitCode()
	}
	if err != nil {
		tb.Fatal(err)
	}
	return out.String(), 0
}

// killFunctions kills every function process of the local cloud with -9, and returns how many there were.
func killFunctions(t *testing.T) int {
	t.Helper()
	processes, err := exec.CommandContext(t.Context(), "ps", "-axo", "pid=,ppid=,args=").Output()
	if err != nil {
		t.Fatal(err)
	}
	killed := 0
	for line := range strings.Lines(string(processes)) {
		f := strings.Fields(line)
		if len(f) < 3 || f[1] != strconv.Itoa(hub.cloud.PID) || !strings.HasSuffix(f[2], "/bootstrap") {
			continue
		}
		pid, err := strconv.Atoi(f[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err == nil {
			killed++
		}
	}
	return killed
}

// id makes an instance id of the test's own.
func id(tb testing.TB, n int) string {
	tb.Helper()
	return fmt.Sprintf("%s-%d", tb.Name(), n)
}
