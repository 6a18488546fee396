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
)

// What is written builds, is formatted, and passes its own test.
func TestANewApplicationPassesItsTest(t *testing.T) {
	t.Parallel()
	h := setup(t)
	dir := filepath.Join(t.TempDir(), "Two Guests")
	h.mustRun("init", dir, "--replace", "../..", "--json")
	var written struct {
		Module string   `json:"module"`
		Files  []string `json:"files"`
	}
	if err := json.Unmarshal(h.out.Bytes(), &written); err != nil || written.Module != "example.com/two-guests" || !slices.Contains(written.Files, "functions/renewer/main.go") {
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
	h.wantError(exitError, "already has a go.mod", "init", dir, "--replace", "../..")
}

// What is in the folder stays, and nothing is written beside it: another try would find a go.mod.
func TestInitWritesAllOrNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	setup(t).wantError(exitError, "README.md already exists; choose another directory", "init", dir, "--replace", "../..")
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("%v are there, %v", left, err)
	}
}

func TestInitRefusesWhatItCannotRequire(t *testing.T) {
	t.Parallel()
	h := setup(t)
	dir := t.TempDir()
	h.wantError(exitError, "specify the checkout with --replace", "init", dir)
	h.wantError(exitError, "is not a checkout of github.com/perdure/perdure", "init", dir, "--replace", dir)
	h.wantError(exitError, "unexpected argument", "init", dir, dir)
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("%v was written, %v", files, err)
	}
}

func TestNamesOfANewApplication(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ dir, module, version, wantModule, wantPackage, wantVersion string }{
		{dir: "/x/orders", version: "v0.3.0", wantModule: "example.com/orders", wantPackage: "orders", wantVersion: "v0.3.0"},
		{dir: "/x/Order Book_2", version: "v0.3.0", wantModule: "example.com/order-book-2", wantPackage: "orderbook2", wantVersion: "v0.3.0"},
		{dir: "/x/y", module: "corp.example/a/go-orders", version: "v1.0.0", wantModule: "corp.example/a/go-orders", wantPackage: "goorders", wantVersion: "v1.0.0"},
		{dir: "/x/42", version: "v1.0.0", wantModule: "example.com/42", wantPackage: "app", wantVersion: "v1.0.0"},
		{dir: "/x/main", version: "v1.0.0", wantModule: "example.com/main", wantPackage: "app", wantVersion: "v1.0.0"},
	} {
		app, err := describeApplication(tt.dir, initFlags{module: tt.module}, tt.version)
		if err != nil || app.Module != tt.wantModule || app.Package != tt.wantPackage || app.Version != tt.wantVersion {
			t.Errorf("%s %s: %+v, %v", tt.dir, tt.module, app, err)
		}
	}
}
