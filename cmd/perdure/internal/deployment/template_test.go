package deployment

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/infra/template"
)

func TestTemplateCheck_values(t *testing.T) {
	t.Parallel()
	parsed := embedded(t)
	for _, c := range []struct{ name, value, want string }{
		{"WorkerMemory", "1024", ""},
		{"WorkerMemory", "64", "must be at least 128, is 64"},
		{"WorkerMemory", "20000", "must be at most 10240, is 20000"},
		{"WorkerMemory", "much", `must be a number, is "much"`},
		{"APIKind", "function-url", ""},
		{"APIKind", "rest", `must be one of http-api, function-url, is "rest"`},
		{"LogRetention", "30", ""},
		{"LogRetention", "31", "must be one of 1, 3, 5"},
		{"Retention", "30d", ""},
		{"Retention", "12h", ""},
		{"Retention", "30", "must match"},
		{"Retention", "30d\n", "must match"},
		{"AlarmTopicARN", "", ""},
		{"HubName", "x", "set HubName with --hub"},
		{"CodeBucket", "x", "CodeBucket is set by the command"},
		{"WorkerBuild", "x", "WorkerBuild is set by the command"},
		{"Memory", "1", `the template has no parameter "Memory"`},
	} {
		err := parsed.check(c.name, c.value)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s=%q: got %v, want %q", c.name, c.value, err, c.want)
		}
	}
}

func TestParseTemplate_invalid_isRejected(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"Resources:":                           "template is not JSON",
		`{"Parameters":{}}`:                    "template has no parameter HubName",
		`{"Parameters":{"HubName":{},"X":{}}}`: "template has no parameter CodeBucket",
	} {
		if _, err := ParseTemplate([]byte(raw)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", raw, err)
		}
	}
	if parsed := embedded(t); len(parsed.Body) >= len(template.JSON) || len(parsed.Body) > 900_000 {
		t.Errorf("the template has %d bytes; the limit of CloudFormation is 1 MB", len(parsed.Body))
	}
}

// The same binary results in the same archive, and its build ID does not depend on the archive.
func TestFunction_archive_isReproducible(t *testing.T) {
	t.Parallel()
	f := Function{Name: "worker", Binary: bytes.Repeat([]byte("code"), 1000)}
	first, err := f.archive()
	if err != nil {
		t.Fatal(err)
	}
	second, err := f.archive()
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("the archives differ: %v", err)
	}
	z, err := zip.NewReader(bytes.NewReader(first), int64(len(first)))
	if err != nil || len(z.File) != 1 || z.File[0].Name != "bootstrap" || z.File[0].Mode() != 0o755 {
		t.Fatalf("archive %+v, %v", z, err)
	}
	r, err := z.File[0].Open()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, f.Binary) {
		t.Errorf("the archive has other code: %v", err)
	}
	if id := f.BuildID(); len(id) != 64 || len(first) > len(f.Binary) {
		t.Errorf("build ID %s, %d bytes", id, len(first))
	}
}

func TestReadBinaries_directory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, f := range functionNames[:3] {
		if err := os.MkdirAll(filepath.Join(dir, f.name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, f.name, "bootstrap"), []byte(f.name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ReadBinaries(dir); err == nil || !strings.Contains(err.Error(), "--binaries "+dir+": read function api") {
		t.Errorf("got %v", err)
	}
	last := filepath.Join(dir, functionNames[3].name)
	if err := os.Mkdir(last, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(last, "bootstrap"), []byte("api"), 0o755); err != nil {
		t.Fatal(err)
	}
	functions, err := ReadBinaries(dir)
	if err != nil || len(functions) != 4 || string(functions[1].Binary) != "worker" || functions[3].Name != "api" {
		t.Errorf("got %v, %v", functions, err)
	}
}

func TestBuild_brokenApplication_fails(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	app := t.TempDir()
	b := &Builder{App: app, Environ: os.Environ(), Output: &out}
	if err := b.check(); err == nil || !strings.Contains(err.Error(), filepath.Join(app, "functions", "orchestrator")) {
		t.Errorf("got %v", err)
	}
	for _, f := range functionNames {
		dir := filepath.Join(app, "functions", f.name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\nfunc"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(app, "go.mod"), []byte("module example.com/broken\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := b.check(); err != nil {
		t.Error(err)
	}
	_, err := b.Build(t.Context(), "arm64")
	if err == nil || !strings.Contains(err.Error(), "go build") || !strings.Contains(out.String(), "main.go") {
		t.Errorf("got %v\n%s", err, out.String())
	}
}
