package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// imports are the packages of the published modules that the program of a user imports.
var imports = []string{
	modulePath, modulePath + "/client", modulePath + "/lambdahandler", modulePath + "/perduretest",
	modulePath + "/provider/dynamo", modulePath + "/infra/cdk", modulePath + "/codec/kmskeys",
	modulePath + "/telemetry/perdureotel",
}

// downloads is the directory of a module cache with the layout of a module proxy.
const downloads = "cache/download"

func fileURL(dir string) string { return "file://" + filepath.ToSlash(dir) }

const consumerModule = "module example.com/consumer\n\ngo 1.26.0\n"

// consumer is a user of a release, with a module cache that only the release fills.
type consumer struct {
	dir     string
	env     []string
	proxies []string // URLs of the proxies in file systems
	version string
	sums    []byte // of all dependencies
	modules []packed
}

// newConsumer writes a release to a module proxy in dir, and returns a user of this proxy. The other modules come from
// the downloads of the machine's module cache, or from its proxy.
func newConsumer(ctx context.Context, dir string, release source) (*consumer, error) {
	proxy := filepath.Join(dir, "proxy")
	if err := writeProxy(proxy, release.modules, release.committed); err != nil {
		return nil, err
	}
	machine, err := output(exec.CommandContext(ctx, "go", "env", "GOPROXY", "GOMODCACHE"))
	if err != nil {
		return nil, err
	}
	upstream, cache, _ := strings.Cut(strings.TrimSpace(machine), "\n")
	proxies := []string{fileURL(proxy), fileURL(filepath.Join(cache, downloads))}
	c := &consumer{dir: dir, proxies: proxies, version: release.version, modules: release.modules}
	c.env = append(os.Environ(),
		"GOPROXY="+strings.Join(append(proxies, upstream), ","), "GONOSUMDB="+modulePath, "GONOPROXY=none",
		"GOPRIVATE=", "GOMODCACHE="+filepath.Join(dir, "mod"), "GOWORK=off", "GOTOOLCHAIN=local",
		"GOFLAGS=-modcacherw -trimpath -buildvcs=false", "CGO_ENABLED=0",
	)
	var lines []string
	for name, content := range release.files {
		if path.Base(name) == goSum && !strings.HasPrefix(name, "bench/") {
			lines = append(lines, strings.Split(string(content), "\n")...)
		}
	}
	c.sums = addSums(nil, lines)
	return c, nil
}

// run runs the go command in a directory of the user and returns its output.
func (c *consumer) run(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // the arguments are constants
	cmd.Dir = filepath.Join(c.dir, dir)
	cmd.Env = c.env
	return output(cmd)
}

// getModules adds the modules to a new module with go get, and builds a program that imports them and uses the command.
func (c *consumer) getModules(ctx context.Context) error {
	const dir = "getter"
	var program strings.Builder
	program.WriteString("package main\n\nimport (\n")
	for _, p := range imports {
		fmt.Fprintf(&program, "\t_ %s\n", strconv.Quote(p))
	}
	program.WriteString(")\n\nfunc main() {}\n")
	for name, content := range map[string]string{
		goMod: consumerModule, goSum: string(c.sums), "main.go": program.String(),
	} {
		if err := writeFile(filepath.Join(c.dir, dir, name), []byte(content)); err != nil {
			return err
		}
	}
	get := []string{"get"}
	for _, m := range c.modules {
		get = append(get, m.Path+"@"+c.version)
	}
	tool := modulePath + "/cmd/perdure"
	for _, args := range [][]string{
		get, {"get", "-tool", tool + "@" + c.version}, {"mod", "tidy"}, {"build", "./..."},
	} {
		if _, err := c.run(ctx, dir, args...); err != nil {
			return err
		}
	}
	if err := c.checkVersions(ctx, dir); err != nil {
		return err
	}
	return c.checkCommand(ctx, dir, "tool", "perdure", "version")
}

// checkVersions returns an error unless a build uses each module at the version of the release, without replacement.
func (c *consumer) checkVersions(ctx context.Context, dir string) error {
	const format = "{{.Path}} {{.Version}}{{if .Replace}} replaced{{end}}"
	list, err := c.run(ctx, dir, "list", "-m", "-f", format, "all")
	if err != nil {
		return err
	}
	for _, m := range c.modules {
		if want := m.Path + " " + c.version; !slices.Contains(strings.Split(list, "\n"), want) {
			return fmt.Errorf("a module that requires all modules does not use %s: %s", want, list)
		}
	}
	return nil
}

// checkCommand runs the command and returns an error if it prints another version.
func (c *consumer) checkCommand(ctx context.Context, dir string, args ...string) error {
	got, err := c.run(ctx, dir, args...)
	if err != nil {
		return err
	}
	if want := "perdure " + c.version + ","; !strings.HasPrefix(got, want) {
		return fmt.Errorf("go %s: got %q, want %q", strings.Join(args, " "), got, want)
	}
	return nil
}

// initApplication creates an application as the installation guide describes, and tests it.
func (c *consumer) initApplication(ctx context.Context) error {
	const dir = "orders"
	if err := writeFile(filepath.Join(c.dir, dir, goSum), c.sums); err != nil {
		return err
	}
	_, err := c.run(ctx, "", "run", modulePath+"/cmd/perdure@"+c.version, "init", dir)
	if err != nil {
		return err
	}
	_, err = c.run(ctx, dir, "test", "./...")
	return err
}

// buildTagged compiles the modules that require others of the release, with the go.mod and go.sum of the tagged commit.
func (c *consumer) buildTagged(ctx context.Context, files tree) error {
	for _, dir := range slices.Concat(published[1:], following) {
		for name, content := range files {
			if !strings.HasPrefix(name, dir+"/") {
				continue
			}
			if err := writeFile(filepath.Join(c.dir, "tagged", filepath.FromSlash(name)), content); err != nil {
				return err
			}
		}
		at := filepath.Join("tagged", dir)
		if _, err := c.run(ctx, at, "list", "-mod=readonly", "-deps", "-export", "./..."); err != nil {
			return err
		}
		if _, err := c.run(ctx, at, "list", "-mod=readonly", "-deps", "-test", "./..."); err != nil {
			return err
		}
	}
	return nil
}
