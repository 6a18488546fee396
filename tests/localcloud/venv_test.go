package localcloud_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/tests/localcloud"
)

// Checkouts may share a Python environment through a symbolic link. The script restarts itself with the Python of its
// environment at most once.
func TestScript_virtualEnvironmentIsASymlink_starts(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	if _, err := localcloud.Start(ctx, "no-such-command"); err == nil { // creates the environment if it is missing
		t.Fatal("unknown command: got no error")
	}
	there, err := filepath.Abs("../../localstack")
	if err != nil {
		t.Fatal(err)
	}
	here := t.TempDir()
	for _, pattern := range []string{"*.py", "*.txt"} {
		copyAll(t, here, filepath.Join(there, pattern))
	}
	if err := os.Symlink(filepath.Join(there, ".venv"), filepath.Join(here, ".venv")); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(ctx, "python3", filepath.Join(here, "local.py"), "no-such-command").CombinedOutput()
	if ctx.Err() != nil || err == nil || !strings.Contains(string(out), "invalid choice: 'no-such-command'") {
		t.Errorf("got context error %v, error %v, output %s", ctx.Err(), err, out)
	}
	if info, err := os.Lstat(filepath.Join(here, ".venv")); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("symlink of the environment was replaced: %v", err)
	}
}

// copyAll copies the files of a pattern into a folder.
func copyAll(t *testing.T, folder, pattern string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: got no files, error %v", pattern, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, filepath.Base(file)), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
