package main

import (
	"bytes"
	"encoding/json"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
)

// The created application builds, is formatted, and passes its own test.
func TestInit_newApplication_passesItsTests(t *testing.T) {
	t.Parallel()
	h := setup(t)
	dir := filepath.Join(t.TempDir(), "Two Guests")
	h.mustRun("init", dir, "--replace", "../..", "--json")
	var written struct {
		Module string   `json:"module"`
		Files  []string `json:"files"`
	}
	if err := json.Unmarshal(h.out.Bytes(), &written); err != nil || written.Module != "example.com/two-guests" ||
		!slices.Contains(written.Files, "functions/renewer/main.go") {
		t.Errorf("%v: %s", err, h.out.String())
	}
	for _, name := range written.Files {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(name, ".go") {
			continue
		}
		if formatted, err := format.Source(b); err != nil || !bytes.Equal(b, formatted) {
			t.Errorf("%s is not formatted: %v", name, err)
		}
	}
	for _, args := range [][]string{{"vet", "./..."}, {"test", "./..."}} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("go %s: %v: %s", args, err, out)
		}
	}
	h.wantError(cli.CodeError, "already has a go.mod", "init", dir, "--replace", "../..")
}

// If init wrote some of its files before the error, the next attempt would find a go.mod and fail.
func TestInit_directoryHasFiles_changesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	setup(t).wantError(cli.CodeError, "README.md already exists; choose another directory", "init", dir, "--replace",
		"../..")
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("%v are there, %v", left, err)
	}
}

func TestInit_missingOrInvalidCheckout_writesNothing(t *testing.T) {
	t.Parallel()
	h := setup(t)
	dir := t.TempDir()
	h.wantError(cli.CodeError, "specify the checkout with --replace", "init", dir)
	h.wantError(cli.CodeError, "is not a checkout of github.com/perdure/perdure", "init", dir, "--replace", dir)
	h.wantError(cli.CodeError, "unexpected argument", "init", dir, dir)
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("%v was written, %v", files, err)
	}
}
