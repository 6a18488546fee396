package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const thirdPartyFile = "THIRD_PARTY.md"

// ownLicense is the license of this repository.
const ownLicense = "Apache-2.0"

// allowed are the licenses that dependencies of the published modules can have.
var allowed = []string{ownLicense, "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}

// exceptions are licenses of single modules that are allowed too.
var exceptions = map[string][]string{
	"github.com/modelcontextprotocol/go-sdk": {"CC-BY-4.0"}, // its documentation
}

// thirdParty returns the content of THIRD_PARTY.md. It returns an error if a license is unknown or not allowed.
func thirdParty(ctx context.Context, root string) (string, error) {
	all, err := dependencies(ctx, root, published, nil)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("# Third-party licenses\n\nThe published modules import these modules. `make third-party` writes " +
		"this list, and `make release-check` checks it.\n\n| module | licenses | imported by |\n|---|---|---|\n")
	var failed []error
	type row struct{ licenses, users []string }
	rows := map[string]row{} // two of our modules can require two versions
	for _, d := range all {
		ids, err := d.licenses()
		failed = append(failed, err)
		for _, id := range ids {
			if !slices.Contains(allowed, id) && !slices.Contains(exceptions[d.path], id) {
				failed = append(failed, fmt.Errorf("%s has the license %s, which is not allowed", d.path, id))
			}
		}
		r := rows[d.path]
		r.licenses = append(r.licenses, ids...)
		for u := range d.users {
			r.users = append(r.users, cmp.Or(strings.TrimPrefix(strings.TrimPrefix(u, modulePath), "/"), "perdure"))
		}
		rows[d.path] = r
	}
	for _, path := range slices.Sorted(maps.Keys(rows)) {
		r := rows[path]
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", path, joinUnique(r.licenses), joinUnique(r.users))
	}
	return b.String(), errors.Join(failed...)
}

// joinUnique returns the different values, sorted and separated by commas.
func joinUnique(all []string) string {
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ", ")
}

// checkLicenses checks the licenses of all dependencies, and that THIRD_PARTY.md lists them.
func checkLicenses(ctx context.Context, root string) (string, error) {
	want, err := thirdParty(ctx, root)
	if err != nil {
		return "", err
	}
	got, err := os.ReadFile(filepath.Join(root, thirdPartyFile)) //nolint:gosec // a file of this repository
	if err != nil {
		return "", fmt.Errorf("read the list of dependencies: %w", err)
	}
	if string(got) != want {
		return "", fmt.Errorf("%s is out of date: run make third-party", thirdPartyFile)
	}
	return fmt.Sprintf("%d modules are listed and allowed", strings.Count(want, "\n| `")), nil
}

func updateThirdParty(ctx context.Context, root string) error {
	text, err := thirdParty(ctx, root)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(root, thirdPartyFile), []byte(text))
}

// writeLicenseTexts writes the license texts of the command's dependencies and of Go, which its binaries contain.
func writeLicenseTexts(ctx context.Context, root, name string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return fmt.Errorf("locate the repository: %w", err)
	}
	all, err := dependencies(ctx, root, []string{""}, []string{"./cmd/perdure"})
	if err != nil {
		return err
	}
	goRoot, err := output(exec.CommandContext(ctx, "go", "env", "GOROOT"))
	if err != nil {
		return err
	}
	var b bytes.Buffer
	add := func(title, file string) error {
		text, err := os.ReadFile(file) //nolint:gosec // a file of the module cache or of Go
		if err != nil {
			return fmt.Errorf("read the license of %s: %w", title, err)
		}
		fmt.Fprintf(&b, "==== %s ====\n\n%s\n\n", title, bytes.TrimSpace(text))
		return nil
	}
	if err := add("Go standard library", filepath.Join(strings.TrimSpace(goRoot), license)); err != nil {
		return err
	}
	for _, d := range all {
		files, err := d.files()
		if err != nil {
			return err
		}
		for _, f := range files {
			within, err := filepath.Rel(d.dir, f)
			if err != nil {
				return fmt.Errorf("locate the license of %s: %w", d.path, err)
			}
			if err := add(d.path+" "+d.version+" "+filepath.ToSlash(within), f); err != nil {
				return err
			}
		}
	}
	return writeFile(name, b.Bytes())
}
