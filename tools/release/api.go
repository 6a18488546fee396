package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/types"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/exp/apidiff"
	"golang.org/x/mod/modfile"
	"golang.org/x/tools/go/packages"
)

// acceptedFile lists the incompatible changes that the next release makes, one message of checkAPI a line.
const acceptedFile = "tools/release/accepted-api-changes.txt"

// checkAPI compares the exported API of the published modules with that of the last release.
func checkAPI(ctx context.Context, root string) (string, error) {
	accepted, err := readAccepted(filepath.Join(root, filepath.FromSlash(acceptedFile)))
	if err != nil {
		return "", err
	}
	last, err := lastRelease(ctx, root)
	if err != nil {
		return "", err
	}
	var changes []string
	compared := "no earlier release"
	if last != "" {
		compared = "compared with " + last
		if changes, err = changesSince(ctx, root, last); err != nil {
			return "", err
		}
	}
	var failed []error
	for _, c := range changes {
		if !slices.Contains(accepted, c) {
			failed = append(failed, fmt.Errorf("incompatible with %s: %s", last, c))
		}
	}
	for _, a := range accepted {
		if !slices.Contains(changes, a) {
			failed = append(failed, fmt.Errorf("%s has a change that does not exist: %s", acceptedFile, a))
		}
	}
	return fmt.Sprintf("%s, %d accepted changes", compared, len(accepted)), errors.Join(failed...)
}

func readAccepted(name string) ([]string, error) {
	text, err := os.ReadFile(name) //nolint:gosec // a file of this repository
	if err != nil {
		return nil, fmt.Errorf("read the accepted changes: %w", err)
	}
	var all []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			all = append(all, line)
		}
	}
	return all, nil
}

// lastRelease returns the newest version that was tagged before HEAD, or "" if there is none.
func lastRelease(ctx context.Context, root string) (string, error) {
	tags, err := git(ctx, root, "tag", "--list", "v*", "--merged", "HEAD", "--no-contains", "HEAD",
		"--sort=-version:refname")
	if err != nil {
		return "", err
	}
	if all := strings.Fields(tags); len(all) > 0 {
		return all[0], nil
	}
	shallow, err := git(ctx, root, "rev-parse", "--is-shallow-repository")
	if err == nil && strings.TrimSpace(shallow) == "true" {
		err = errors.New("this clone is shallow: fetch the history and tags with git fetch --unshallow --tags")
	}
	return "", err
}

// changesSince returns the incompatible changes of the exported API since a tag.
func changesSince(ctx context.Context, root, tag string) ([]string, error) {
	old, err := os.MkdirTemp("", "perdure-api-")
	if err != nil {
		return nil, fmt.Errorf("create a directory: %w", err)
	}
	defer os.RemoveAll(old) //nolint:errcheck // a leftover in the temporary directory does no harm
	if err := extract(ctx, root, tag, old); err != nil {
		return nil, err
	}
	var all []string
	for _, dir := range published {
		if _, err := os.Stat(filepath.Join(old, dir, goMod)); err != nil {
			continue // a new module
		}
		before, err := exported(ctx, old, dir)
		if err != nil {
			return nil, fmt.Errorf("load %s of %s: %w", pathOf(dir), tag, err)
		}
		after, err := exported(ctx, root, dir)
		if err != nil {
			return nil, fmt.Errorf("load %s: %w", pathOf(dir), err)
		}
		for _, c := range apidiff.ModuleChanges(before, after).Changes {
			if !c.Compatible {
				all = append(all, path.Join("perdure", dir)+": "+c.Message)
			}
		}
	}
	return all, nil
}

// extract writes the tree of a tag to a directory. Its nested modules use the modules beside them.
func extract(ctx context.Context, root, tag, dir string) error {
	archive, err := git(ctx, root, "archive", "--format=tar", tag)
	if err != nil {
		return err
	}
	r := tar.NewReader(strings.NewReader(archive))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("extract %s: %w", tag, err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		content, err := io.ReadAll(r)
		if err != nil {
			return fmt.Errorf("extract %s: %w", tag, err)
		}
		if path.Base(h.Name) == goMod {
			if content, err = useSiblings(h.Name, content); err != nil {
				return err
			}
		}
		if err := writeFile(filepath.Join(dir, filepath.FromSlash(h.Name)), content); err != nil {
			return err
		}
	}
}

// useSiblings returns a go.mod file with replace directives for the modules of the same tree.
func useSiblings(name string, content []byte) ([]byte, error) {
	mod, err := modfile.Parse(name, content, nil)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	for _, r := range mod.Require {
		if !isOurs(r.Mod.Path) {
			continue
		}
		up := strings.Repeat("../", strings.Count(name, "/"))
		sibling := path.Join(up, strings.TrimPrefix(r.Mod.Path, modulePath))
		if err := mod.AddReplace(r.Mod.Path, "", "./"+sibling, ""); err != nil {
			return nil, fmt.Errorf("replace %s: %w", r.Mod.Path, err)
		}
	}
	return bytes.TrimSpace(modfile.Format(mod.Syntax)), nil
}

// exported loads the packages of a module that others can import.
func exported(ctx context.Context, root, dir string) (*apidiff.Module, error) {
	at := filepath.Join(root, dir)
	paths, err := importable(ctx, at, pathOf(dir))
	if err != nil {
		return nil, err
	}
	paths = slices.DeleteFunc(paths, func(p string) bool {
		return slices.Contains(strings.Split(p, "/"), "internal")
	})
	all, err := packages.Load(&packages.Config{
		Context: ctx, Dir: at, Env: append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off"),
		Mode: packages.NeedName | packages.NeedImports | packages.NeedTypes | packages.NeedExportFile,
	}, paths...)
	if err != nil {
		return nil, fmt.Errorf("load the packages: %w", err)
	}
	m := &apidiff.Module{Path: pathOf(dir)}
	for _, p := range all {
		for _, e := range p.Errors {
			return nil, fmt.Errorf("load %s: %w", p.PkgPath, e)
		}
		if p.Name != "main" {
			m.Packages = append(m.Packages, p.Types)
		}
	}
	slices.SortFunc(m.Packages, func(a, b *types.Package) int { return strings.Compare(a.Path(), b.Path()) })
	return m, nil
}
