package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
)

const fakeWorker = "./testdata/fakeworker"

// outputWriter is a writer that collects the output of a program and signals each write.
type outputWriter struct {
	mu   sync.Mutex
	text bytes.Buffer
	when func(text string)
}

func (s *outputWriter) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(b)
	if s.when != nil {
		s.when(s.text.String())
	}
	return len(b), nil
}

// work runs perdure worker with the fake program and its instructions, and stops it after enough output. Do not use
// work in parallel tests.
func work(t *testing.T, does string, enough func(text string) bool, args ...string) (code int, out, stderr string) {
	t.Helper()
	t.Setenv("FAKE_WORKER", does)
	t.Setenv("AWS_REGION", "eu-north-1")
	t.Setenv("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:1")
	t.Setenv("PERDURE_TABLE", "of another hub")
	t.Setenv("PERDURE_API", "https://another.example.com")
	t.Setenv("PERDURE_QUEUE", "inherited")
	t.Setenv("TMPDIR", t.TempDir())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var printed, stderrText outputWriter
	if enough != nil {
		printed.when = func(text string) {
			if enough(text) {
				stop()
			}
		}
	}
	env := &cli.Env{Getenv: func(string) string { return "" }, Stdout: &printed, Stderr: &stderrText}
	code = run(ctx, env, append([]string{"worker", "--hub", "mine"}, args...))
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "perdure-worker-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	return code, printed.text.String(), stderrText.text.String()
}

const fakeSays = "hub mine, queue inherited, region eu-north-1, on Lambda false, another hub's table false\n"

// The program receives the environment of the tool and the names of its hub and queue. It receives no settings of
// another hub.
func TestWorker_environment_namesHubAndQueue(t *testing.T) {
	if code, out, stderr := work(t, "ends", nil, fakeWorker); code != 0 || out != fakeSays ||
		stderr != "a complaint without an end" {
		t.Errorf("exit %d, printed %q and %q", code, out, stderr)
	}
	if code, out, _ := work(t, "ends", nil, fakeWorker, "--queue", "payments"); code != 0 ||
		!strings.Contains(out, "queue payments,") {
		t.Errorf("with --queue: exit %d, printed %q", code, out)
	}
}

func TestWorker_binary_runsWithoutBuild(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "worker")
	if b, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary,
		fakeWorker).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	if code, out, _ := work(t, "ends", nil, binary); code != 0 || out != fakeSays {
		t.Errorf("exit %d, printed %q", code, out)
	}
	t.Chdir(filepath.Dir(binary))
	if code, out, _ := work(t, "ends", nil, "worker"); code != 0 || out != fakeSays {
		t.Errorf("by a relative name: exit %d, printed %q", code, out)
	}
}

// After an interrupt, the tool stops the program, waits for it and succeeds, even if the signal kills the program.
func TestWorker_interrupted_stopsProgram(t *testing.T) {
	started := func(text string) bool { return strings.HasSuffix(text, "\n") }
	if code, out, stderr := work(t, "", started, fakeWorker); code != 0 || out != fakeSays+"stopped\n" {
		t.Errorf("exit %d, printed %q and %q", code, out, stderr)
	}
	if code, _, stderr := work(t, "dies of the signal", started, fakeWorker); code != 0 {
		t.Errorf("exit %d, complained %q", code, stderr)
	}
}

// With several programs, each line starts with the name of its program. If one program fails, the tool stops the others
// and fails.
func TestWorker_severalPrograms_prefixesTheirLines(t *testing.T) {
	good := filepath.Join(t.TempDir(), "good")
	script := "#!/bin/sh\ntrap 'echo good; exit 0' TERM\nwhile :; do sleep 0.01; done\n"
	writeProgram(t, good, script)
	code, out, stderr := work(t, "fails", nil, fakeWorker, good)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	slices.Sort(lines)
	if code != cli.CodeError || !slices.Contains(lines, "fakeworker | "+strings.TrimSpace(fakeSays)) {
		t.Errorf("exit %d, printed %q", code, out)
	}
	if !strings.Contains(stderr, "fakeworker | a complaint without an end\n") ||
		!strings.Contains(stderr, "perdure: "+fakeWorker+": exit status 7") {
		t.Errorf("complained %q", stderr)
	}
}

func TestWorker_buildFails_isAnError(t *testing.T) {
	code, out, stderr := work(t, "ends", nil, "./testdata/no-such-package")
	if code != cli.CodeError || out != "" ||
		!strings.Contains(stderr,
			"perdure: go build ./testdata/no-such-package: exit status 1; specify a package or a binary") {
		t.Errorf("exit %d, printed %q and %q", code, out, stderr)
	}
}
