package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/internal/shortrun"
)

// vettool builds the command. The go command runs the binary for each package.
func vettool(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "perdure")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", file, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return file
}

func TestVet_wrongPackage_reportsFindings(t *testing.T) {
	t.Parallel()
	shortrun.Skip(t)
	tool := vettool(t)
	run := func(args ...string) (out string, code int) {
		cmd := exec.CommandContext(t.Context(), tool, args...)
		cmd.Dir = filepath.Join("..", "..")
		text, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return string(text), cmd.ProcessState.ExitCode()
	}
	const wrong = "./analysis/testdata/wrong/globals"

	out, code := run("vet", wrong)
	if code != cli.CodeError || !strings.Contains(out, ": order writes counter: ") ||
		!strings.Contains(out, "[globalread]") {
		t.Errorf("exit %d: %s", code, out)
	}
	if out, code := run("vet", "--disable", "globals", "--warnings=false", wrong); code != 0 || out != "" {
		t.Errorf("with all rules disabled, exit %d: %s", code, out)
	}
	if out, code := run("vet", "--json", wrong); code != 0 || !strings.Contains(out, `"category": "globals"`) {
		t.Errorf("--json: exit %d: %s", code, out)
	}
	if out, code := run("vet", "--disable", "nope"); code != cli.CodeError ||
		!strings.Contains(out, `unknown rule "nope"`) {
		t.Errorf("--disable nope: exit %d: %s", code, out)
	}

	// The examples and scenarios of this repository have no findings.
	if out, code := run("vet", "./examples/...", "./tests/scenarios/..."); code != 0 || out != "" {
		t.Errorf("exit %d: %s", code, out)
	}
	began := time.Now()
	if out, code := run("vet", "./examples/..."); code != 0 {
		t.Errorf("exit %d: %s", code, out)
	}
	t.Logf("the examples, with a warm cache: %v", time.Since(began).Round(time.Millisecond))
}

func TestVet_goCommandIsMissing_isAnError(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	setup(t).wantError(cli.CodeError, "run the go command", "vet")
}
