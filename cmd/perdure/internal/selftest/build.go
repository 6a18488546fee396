package selftest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/perdure/perdure/cmd/perdure/internal/deployment"
)

const (
	module = "github.com/perdure/perdure"
	// application is the directory of the functions in the module.
	application = "cmd/perdure/internal/selftest/app"
	buildTags   = "lambda.norpc,perdure_lambda"
)

// builder builds the functions of the self-test from the source of this tool.
type builder struct {
	environ []string
	output  io.Writer
	// version is the release of this tool, or empty if it was built from a checkout.
	version string
}

// build builds the functions for a CPU architecture.
func (b *builder) build(ctx context.Context, architecture string) ([]deployment.Function, error) {
	source, err := b.source(ctx)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(b.output, "building the functions of %s for %s\n", source, architecture)
	d := &deployment.Builder{
		App: filepath.Join(source, filepath.FromSlash(application)), Tags: buildTags, Environ: b.environment(),
		Output: b.output,
	}
	return d.Build(ctx, architecture)
}

// environment returns the environment of the go command. The directory of a release is read-only, and belongs to no
// workspace of the user.
func (b *builder) environment() []string {
	if b.version == "" {
		return b.environ
	}
	flags := ""
	for _, variable := range b.environ {
		if value, ok := strings.CutPrefix(variable, "GOFLAGS="); ok {
			flags = value + " "
		}
	}
	return append(slices.Clone(b.environ), "GOWORK=off", "GOFLAGS="+flags+"-mod=readonly")
}

// source returns the directory of the module. A release is in the module cache, where the go command puts it if it is
// missing. Otherwise, the current directory belongs to a checkout, or to a module that requires one.
func (b *builder) source(ctx context.Context) (string, error) {
	if b.version != "" {
		out, err := b.goCommand(ctx, os.TempDir(), "mod", "download", "-json", module+"@"+b.version)
		if err != nil {
			return "", err
		}
		var found struct {
			Dir string `json:"Dir"`
		}
		if err := json.Unmarshal(out, &found); err != nil || found.Dir == "" {
			return "", fmt.Errorf("go mod download %s@%s: no directory: %s", module, b.version, out)
		}
		return found.Dir, nil
	}
	out, err := b.goCommand(ctx, "", "list", "-m", "-f", "{{.Dir}}", module)
	dir := strings.TrimSpace(string(out))
	if err != nil || dir == "" {
		return "", fmt.Errorf("this tool was built from a checkout; run it in the checkout, or in an application that "+
			"uses the checkout: %w", cmp.Or(err, errNoSource))
	}
	return dir, nil
}

// errNoSource reports a module without a directory, such as a vendored one.
var errNoSource = errors.New("the source of " + module + " is not available")

// goCommand runs the go command in a directory and returns its standard output.
func (b *builder) goCommand(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // fixed arguments
	cmd.Dir, cmd.Env = dir, b.environment()
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, exec.ErrNotFound):
		return nil, errors.New("go not found in PATH; install it from https://go.dev/dl")
	case err != nil:
		return nil, fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(complaints.String()))
	}
	return out, nil
}

// releases are the versions of tags.
var releases = regexp.MustCompile(`^v\d+\.\d+\.\d+$`)

// releaseOf returns the version of this module that the go command can download, or "" if a build used a checkout.
func releaseOf(build *debug.BuildInfo) string {
	own := &build.Main
	for _, d := range build.Deps {
		if d.Path == module {
			own = d
		}
	}
	// A downloaded module has a checksum. The binary of a release was built from a checkout of its tag.
	if own.Path == module && own.Replace == nil && (own.Sum != "" || releases.MatchString(own.Version)) {
		return own.Version
	}
	return ""
}
