package guides_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// Each block of Go in a guide is a piece of this package's code: it compiles, and a test runs it.
func TestTheCodeOfTheGuidesIsCompiled(t *testing.T) {
	t.Parallel()
	code := contents(t, "*.go")
	for name, page := range contents(t, "*.md") {
		for _, block := range goBlock.FindAllStringSubmatch(page, -1) {
			if !isIn(code, block[1]) {
				t.Errorf("%s: no file of this package has\n%s", name, block[1])
			}
		}
	}
}

func isIn(code map[string]string, block string) bool {
	for _, file := range code {
		if strings.Contains(file, block) {
			return true
		}
	}
	return false
}

// contents are files by their names.
func contents(t *testing.T, pattern string) map[string]string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: no files, %v", pattern, err)
	}
	files := map[string]string{}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(b)
	}
	return files
}
