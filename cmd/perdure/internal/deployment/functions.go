package deployment

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/cmd/perdure/internal/program"
)

// bootstrap is the name of a binary for the runtime of Lambda.
const bootstrap = "bootstrap"

// Function is the binary of a function.
type Function struct {
	Name   string
	Binary []byte
}

// BuildID returns the hash of the binary. It does not depend on the compression of the archive.
func (f *Function) BuildID() string {
	sum := sha256.Sum256(f.Binary)
	return hex.EncodeToString(sum[:])
}

// archive returns a zip file with the binary.
func (f *Function) archive() ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	header := &zip.FileHeader{
		Name: bootstrap, Method: zip.Deflate, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	header.SetMode(0o755)
	file, err := w.CreateHeader(header)
	if err == nil {
		_, err = file.Write(f.Binary)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, fmt.Errorf("archive function %s: %w", f.Name, err)
	}
	return b.Bytes(), nil
}

// Builder builds the functions of an application.
type Builder struct {
	// App is the directory with functions/orchestrator and the other functions.
	App string
	// Tags are the build tags.
	Tags string
	// Environ is the environment of the go command, and Output receives its messages.
	Environ []string
	Output  io.Writer
}

// check returns an error if the application has no functions.
func (b *Builder) check() error {
	for _, f := range functionNames {
		dir := filepath.Join(b.App, "functions", f.name)
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return fmt.Errorf("%s is not a directory; specify an application with --app, or create one with "+
				"perdure init", dir)
		}
	}
	return nil
}

// Build builds the functions for Linux on a CPU architecture of Lambda. The same source results in the same binaries.
func (b *Builder) Build(ctx context.Context, architecture string) ([]Function, error) {
	dir, err := os.MkdirTemp("", "perdure-deploy-")
	if err != nil {
		return nil, fmt.Errorf("build functions: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // best effort
	goarch := "arm64"
	if architecture == "x86_64" {
		goarch = "amd64"
	}
	// GOTMPDIR puts the files of a compiler that is killed into the directory.
	environ := slices.Concat(b.Environ,
		[]string{"GOOS=linux", "GOARCH=" + goarch, "CGO_ENABLED=0", "GOTMPDIR=" + dir})
	p := program.New(ctx, "go", environ)
	p.Dir, p.Stdout, p.Stderr = b.App, b.Output, b.Output
	out := filepath.Join(dir, "out") + string(filepath.Separator)
	p.Args = append(p.Args, "build", "-tags", b.Tags, "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", out)
	for _, f := range functionNames {
		p.Args = append(p.Args, "./functions/"+f.name)
	}
	err = program.Run(ctx, p, "go build")
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil && strings.Contains(err.Error(), "executable file not found"):
		return nil, errors.New("go not found in PATH; install it from https://go.dev/dl, or set --binaries")
	case err != nil:
		return nil, err
	}
	return readFunctions(os.DirFS(filepath.Join(dir, "out")), func(name string) string { return name })
}

// ReadBinaries reads <name>/bootstrap for each function of a directory.
func ReadBinaries(dir string) ([]Function, error) {
	functions, err := readFunctions(os.DirFS(dir), func(name string) string { return name + "/" + bootstrap })
	if err != nil {
		return nil, fmt.Errorf("--binaries %s: %w", dir, err)
	}
	return functions, nil
}

func readFunctions(files fs.FS, path func(name string) string) ([]Function, error) {
	functions := make([]Function, len(functionNames))
	for i, f := range functionNames {
		binary, err := fs.ReadFile(files, path(f.name))
		if err != nil {
			return nil, fmt.Errorf("read function %s: %w", f.name, err)
		}
		functions[i] = Function{Name: f.name, Binary: binary}
	}
	return functions, nil
}
