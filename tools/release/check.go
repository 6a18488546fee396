package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// source is a release as the working tree would have it.
type source struct {
	version   string
	committed time.Time
	files     tree // of the tagged commit
	before    tree // of the files that this commit changes
	modules   []packed
}

// loadSource reads the working tree as the release of a version.
func loadSource(ctx context.Context, root, version string) (source, error) {
	files, err := readTree(ctx, root)
	if err != nil {
		return source{}, err
	}
	date, err := git(ctx, root, "log", "-1", "--format=%cI")
	if err != nil {
		return source{}, err
	}
	s := source{version: version, files: files, before: tree{}}
	if s.committed, err = time.Parse(time.RFC3339, strings.TrimSpace(date)); err != nil {
		return source{}, fmt.Errorf("read the time of the commit: %w", err)
	}
	var changed tree
	if s.modules, changed, err = releaseModules(files, version); err != nil {
		return source{}, err
	}
	for name, content := range changed {
		s.before[name] = files[name]
		s.files[name] = content
	}
	return s, nil
}

// check checks what a release of the working tree would publish. names selects the checks: licenses, api, modules,
// binaries and binary, which builds the binary of this machine only. Without names, all run. check writes a line for
// each passed check, and returns the errors of all failed checks.
func check(ctx context.Context, out io.Writer, root string, names []string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return fmt.Errorf("locate the repository: %w", err)
	}
	version, err := nextVersion(root)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "perdure-release-")
	if err != nil {
		return fmt.Errorf("create a directory: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a leftover in the temporary directory does no harm
	if len(names) == 0 {
		names = []string{"licenses", "api", "modules", "binaries"}
	}
	var failed []error
	for _, step := range []struct {
		name string
		run  func() (string, error)
	}{
		{"licenses", func() (string, error) { return checkLicenses(ctx, root) }},
		{"api", func() (string, error) { return checkAPI(ctx, root) }},
		{"modules", func() (string, error) { return checkConsumers(ctx, root, version, filepath.Join(dir, "user")) }},
		{"binary", func() (string, error) { return checkBinaries(ctx, root, filepath.Join(dir, "binary"), isHost) }},
		{"binaries", func() (string, error) {
			return checkBinaries(ctx, root, filepath.Join(dir, "binaries"), func(string, string) bool { return true })
		}},
	} {
		if !slices.Contains(names, step.name) {
			continue
		}
		result, err := step.run()
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", step.name, err))
			continue
		}
		fmt.Fprintf(out, "%s: %s\n", step.name, result)
	}
	return errors.Join(failed...)
}

// checkConsumers uses a release as its users do.
func checkConsumers(ctx context.Context, root, version, dir string) (string, error) {
	release, err := loadSource(ctx, root, version)
	if err != nil {
		return "", err
	}
	c, err := newConsumer(ctx, dir, release)
	if err != nil {
		return "", err
	}
	for _, use := range []func(context.Context) error{
		c.getModules, c.initApplication,
		func(ctx context.Context) error { return c.buildTagged(ctx, release.files) }, c.installSelfTest,
	} {
		if err := use(ctx); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%d work with go get, go tool, go run, perdure init and perdure selftest at %s", len(c.modules),
		version), nil
}
