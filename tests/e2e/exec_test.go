package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
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
	var out, stderr bytes.Buffer
	cmd := exec.CommandContext(tb.Context(), hub.perdure, args...)
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err := cmd.Run()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		tb.Logf("perdure %s: %s", strings.Join(args, " "), stderr.String())
		return out.String(), failed.ExitCode()
	}
	if err != nil {
		tb.Fatal(err)
	}
	return out.String(), 0
}

// killFunctions kills all function processes of the local cloud with SIGKILL, and returns their number.
func killFunctions(t *testing.T) int {
	t.Helper()
	return killFunction(t, "")
}

// killFunction kills the processes of a function, given the end of its name, with SIGKILL. It returns their number.
func killFunction(t *testing.T, name string) int {
	t.Helper()
	// The option e prints environments, which have the names of the functions.
	processes, err := exec.CommandContext(t.Context(), "ps", "axeww", "-o", "pid=,ppid=,command=").Output()
	if err != nil {
		t.Fatal(err)
	}
	killed := 0
	for line := range strings.Lines(string(processes)) {
		f := strings.Fields(line)
		if len(f) < 3 || f[1] != strconv.Itoa(hub.cloud.PID) || !strings.HasSuffix(f[2], "/bootstrap") {
			continue
		}
		isOf := func(variable string) bool {
			return strings.HasPrefix(variable, "AWS_LAMBDA_FUNCTION_NAME=") && strings.HasSuffix(variable, name)
		}
		if name != "" && !slices.ContainsFunc(f, isOf) {
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

// id returns the n-th instance ID of the test.
func id(tb testing.TB, n int) string {
	tb.Helper()
	return fmt.Sprintf("%s-%d", tb.Name(), n)
}
