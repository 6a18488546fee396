package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// systems are the operating systems of the released binaries.
var systems = []string{"linux", "darwin", "windows"}

// repositoryOnly are the folders with packages that users of a module do not import.
var repositoryOnly = []string{"tests", "examples", "docs", "internal", "localstack"}

// dependency is a module of others that ours import.
type dependency struct {
	path, version string
	dir           string              // in the module cache
	folders       map[string]struct{} // of the imported packages and of their parents, below dir
	users         map[string]struct{} // paths of our modules
}

// licenseFile matches the names of files with the terms of a module.
var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// terms matches those that have a license, and not a notice, a grant or a summary beside it.
var terms = regexp.MustCompile(`(?i)^(licen[cs]e|copying)([.-](txt|md|mit|apache.*|bsd.*))?$`)

// dependencies returns the modules that the packages of our modules import on any released system, sorted by path.
// patterns select the packages of each module; nil selects all that users can import.
func dependencies(ctx context.Context, root string, dirs, patterns []string) ([]*dependency, error) {
	found := map[string]*dependency{}
	for _, dir := range dirs {
		at := filepath.Join(root, dir)
		packages := patterns
		if packages == nil {
			var err error
			if packages, err = importable(ctx, at, pathOf(dir)); err != nil {
				return nil, err
			}
		}
		for _, system := range systems {
			if err := addDependencies(ctx, found, at, pathOf(dir), system, packages); err != nil {
				return nil, err
			}
		}
	}
	all := make([]*dependency, 0, len(found))
	for _, d := range found {
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b *dependency) int { return cmp.Compare(a.path, b.path) })
	return all, nil
}

// importable returns the packages of a module that others can import, and its commands.
func importable(ctx context.Context, dir, module string) ([]string, error) {
	list, err := goList(ctx, dir, systems[0], "{{.ImportPath}}", "./...")
	return slices.DeleteFunc(list, func(path string) bool {
		folder, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(path, module), "/"), "/")
		return slices.Contains(repositoryOnly, folder)
	}), err
}

// goList runs go list in a module for a system and returns its lines.
func goList(ctx context.Context, dir, system, format string, args ...string) ([]string, error) {
	args = append([]string{"list", "-f", format}, args...)
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // packages of this repository
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0", "GOWORK=off")
	out, err := output(cmd)
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSpace(out), "\n"), nil
}

func addDependencies(
	ctx context.Context, found map[string]*dependency, dir, user, system string, packages []string,
) error {
	const format = "{{with .Module}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}\t{{.Dir}}"
	lines, err := goList(ctx, dir, system, format, append([]string{"-deps"}, packages...)...)
	if err != nil {
		return err
	}
	for _, line := range lines {
		fields := strings.Split(line, "\t")
		if len(fields) != 4 || isOurs(fields[0]) { //nolint:mnd // a package of the standard library has no module
			continue
		}
		key := fields[0] + "@" + fields[1]
		d := found[key]
		if d == nil {
			d = &dependency{
				path: fields[0], version: fields[1], dir: fields[2],
				folders: map[string]struct{}{}, users: map[string]struct{}{},
			}
			found[key] = d
		}
		d.users[user] = struct{}{}
		for folder := fields[3]; ; folder = filepath.Dir(folder) {
			d.folders[folder] = struct{}{}
			if folder == d.dir || len(folder) <= len(d.dir) {
				break
			}
		}
	}
	return nil
}

// files returns the license files of the imported packages and their parents.
func (d *dependency) files() ([]string, error) {
	var all []string
	for folder := range d.folders {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", d.path, err)
		}
		for _, e := range entries {
			if e.Type().IsRegular() && licenseFile.MatchString(e.Name()) && filepath.Ext(e.Name()) != ".go" {
				all = append(all, filepath.Join(folder, e.Name()))
			}
		}
	}
	slices.Sort(all)
	return all, nil
}

// licenses returns the SPDX identifiers of a dependency's licenses, sorted.
func (d *dependency) licenses() ([]string, error) {
	files, err := d.files()
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, name := range files {
		if !terms.MatchString(filepath.Base(name)) {
			continue
		}
		text, err := os.ReadFile(name) //nolint:gosec // a file of the module cache
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", d.path, err)
		}
		found, err := classify(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		ids = append(ids, found...)
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("%s has no license file", d.path)
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// classify returns the SPDX identifiers of the licenses in a text. Unknown texts are an error.
func classify(text []byte) ([]string, error) {
	const enough = 75 // percent of the words, as on pkg.go.dev
	coverage := licensecheck.Scan(text)
	var ids []string
	for _, m := range coverage.Match {
		ids = append(ids, m.ID)
	}
	if coverage.Percent < enough || len(ids) == 0 {
		return nil, fmt.Errorf("unknown license: only %.0f %% of the text is that of a known license", coverage.Percent)
	}
	return ids, nil
}
