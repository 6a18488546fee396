package cdk_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The CDK app that `perdure init` writes compiles and synthesizes a stack.
func TestInitCommand_writtenCDKApp_synthesizesStack(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "guests")
	run := func(in string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir = in
		cmd.Env = append(os.Environ(), "CDK_OUTDIR="+filepath.Join(dir, "cdk.out"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	run("../..", "go", "run", "./cmd/perdure", "init", dir, "--replace", ".")
	binaries, err := filepath.Abs(placeholders)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(binaries, filepath.Join(dir, "dist")); err != nil { // the output of `make dist`
		t.Fatal(err)
	}
	app := filepath.Join(dir, "infra")
	run(app, "go", "mod", "tidy")
	run(app, "go", "vet", "./...")
	run(app, "go", "run", ".")

	template, err := os.ReadFile(filepath.Join(dir, "cdk.out", "Guests.template.json"))
	if err != nil {
		t.Fatal(err)
	}
	if functions := strings.Count(string(template), `"AWS::Lambda::Function"`); functions != 4 {
		t.Errorf("the stack has %d functions, want 4", functions)
	}
}
