package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

const changelog = "CHANGELOG.md"

// headings matches the headings of versions in the changelog.
var headings = regexp.MustCompile(`(?m)^## (\d+\.\d+\.\d+(?:-[0-9A-Za-z.]+)?) \((unreleased|\d{4}-\d{2}-\d{2})\)$`)

// nextVersion returns the version of the newest section of the changelog.
func nextVersion(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, changelog)) //nolint:gosec // a file of this repository
	if err != nil {
		return "", fmt.Errorf("read the changelog: %w", err)
	}
	found := headings.FindSubmatch(text)
	if found == nil {
		return "", errors.New(changelog + ` has no heading such as "## 1.2.3 (unreleased)"`)
	}
	return "v" + string(found[1]), nil
}

// notesOf returns the section of a version in the changelog, which must have a date.
func notesOf(text, version string) (string, error) {
	all := headings.FindAllStringSubmatchIndex(text, -1)
	for i, h := range all {
		if "v"+text[h[2]:h[3]] != version {
			continue
		}
		if text[h[4]:h[5]] == "unreleased" {
			return "", fmt.Errorf("%s: replace (unreleased) after %s with the date of the release", changelog, version)
		}
		end := len(text)
		if i+1 < len(all) {
			end = all[i+1][0]
		}
		return strings.TrimSpace(text[h[1]:end]) + "\n", nil
	}
	return "", fmt.Errorf("%s has no section for %s", changelog, version)
}

func printNotes(out io.Writer, root, version string) error {
	text, err := os.ReadFile(filepath.Join(root, changelog)) //nolint:gosec // a file of this repository
	if err != nil {
		return fmt.Errorf("read the changelog: %w", err)
	}
	notes, err := notesOf(string(text), version)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s", notes)
	return nil
}

// tagRelease commits the release of HEAD, tags its modules, and commits a return to development. It pushes nothing.
func tagRelease(ctx context.Context, out io.Writer, root, version string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return fmt.Errorf("locate the repository: %w", err)
	}
	if semver.Canonical(version) != version || semver.Build(version) != "" {
		return fmt.Errorf("%q is not a version such as v1.2.3", version)
	}
	changes, err := git(ctx, root, "status", "--porcelain")
	if err != nil {
		return err
	}
	if changes != "" {
		return fmt.Errorf("commit or remove these changes first:\n%s", changes)
	}
	s, err := loadSource(ctx, root, version)
	if err != nil {
		return err
	}
	if _, err = notesOf(string(s.files[changelog]), version); err != nil {
		return err
	}
	if err := commitRelease(ctx, root, s); err != nil {
		return err
	}
	if err := commitDevelopment(ctx, root, version, s.before); err != nil {
		return err
	}
	fmt.Fprintf(out, "tagged %s; publish it with:\n  git push --atomic origin HEAD", version)
	for _, m := range s.modules {
		fmt.Fprintf(out, " %s", m.tag())
	}
	fmt.Fprintln(out)
	return nil
}

// commitRelease commits the go.mod and go.sum files of the release, and tags the commit.
func commitRelease(ctx context.Context, root string, s source) error {
	for _, m := range s.modules {
		if existing, err := git(ctx, root, "tag", "--list", m.tag()); err != nil || existing != "" {
			return errors.Join(err, fmt.Errorf("tag %s exists", m.tag()))
		}
	}
	after := tree{}
	for name := range s.before {
		after[name] = s.files[name]
	}
	if err := commit(ctx, root, "Release "+s.version, after); err != nil {
		return err
	}
	for _, m := range s.modules {
		if _, err := git(ctx, root, "tag", "--annotate", "--message", m.Path+" "+s.version, m.tag()); err != nil {
			return err
		}
	}
	return nil
}

// commitDevelopment restores the replace directives. The modules require the release, so that users can require a
// later commit.
func commitDevelopment(ctx context.Context, root, version string, before tree) error {
	after := tree{}
	for name, content := range before {
		if path.Base(name) != goMod {
			after[name] = content
			continue
		}
		mod, err := modfile.Parse(name, content, nil)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		for _, r := range slices.Clone(mod.Require) {
			if !isOurs(r.Mod.Path) {
				continue
			}
			if err := mod.AddRequire(r.Mod.Path, version); err != nil {
				return fmt.Errorf("require %s: %w", r.Mod.Path, err)
			}
		}
		if after[name], err = mod.Format(); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return commit(ctx, root, "Return to development after "+version, after)
}

// commit writes and commits files. A release without nested modules has an empty commit.
func commit(ctx context.Context, root, message string, files tree) error {
	for name, content := range files {
		if err := writeFile(filepath.Join(root, filepath.FromSlash(name)), content); err != nil {
			return err
		}
	}
	names := slices.Sorted(maps.Keys(files))
	if len(names) > 0 {
		if _, err := git(ctx, root, append([]string{"add", "--"}, names...)...); err != nil {
			return err
		}
	}
	_, err := git(ctx, root, "commit", "--quiet", "--allow-empty", "--message", message)
	return err
}
