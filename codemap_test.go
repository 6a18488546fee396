package perdure_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// codeMapSection is the section of docs/internals/design.md whose names TestCodeMap checks.
const codeMapSection = "## Where to look for a bug"

var (
	codeName    = regexp.MustCompile("`([^`]+)`")
	goName      = regexp.MustCompile(`^[A-Za-z]\w*(\.[A-Za-z]\w*)?$`)
	declaration = regexp.MustCompile(`(?m)^(?:func (?:\([^)]*\) )?|(?:async )?function |type |const |\t)([A-Za-z]\w*)`)
)

// sources returns the paths of all files and folders of the repository, and the names that Go files and scripts
// declare.
func sources(t *testing.T) (paths []string, declared map[string]bool) {
	t.Helper()
	declared = map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"):
			return filepath.SkipDir
		}
		paths = append(paths, "/"+filepath.ToSlash(path))
		script := strings.HasSuffix(path, ".js")
		if !script && !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range declaration.FindAllSubmatch(text, -1) {
			declared[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths, declared
}

// Readers find code by the names in the code map, so a renamed function or file must fail here.
func TestCodeMap_namesOfFilesAndFunctions_exist(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/internals/design.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), codeMapSection)
	if !found {
		t.Fatalf("docs/internals/design.md has no section %q", codeMapSection)
	}
	paths, declared := sources(t)
	names := codeName.FindAllStringSubmatch(section, -1)
	if len(names) < 80 {
		t.Errorf("%d names found", len(names))
	}
	for _, m := range names {
		name := m[1]
		isPath := slices.ContainsFunc(paths, func(path string) bool { return strings.HasSuffix(path, "/"+name) })
		last := name[strings.LastIndex(name, ".")+1:]
		if !isPath && (!goName.MatchString(name) || strings.HasSuffix(name, ".go") || !declared[last]) {
			t.Errorf("docs/internals/design.md mentions %s, which does not exist", name)
		}
	}
}
