package guides_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// Each Go block of a guide is part of a test file of this package, so that it compiles and is tested.
func TestGuides_goBlocks_areInTestFiles(t *testing.T) {
	t.Parallel()
	code := readFiles(t, "*.go")
	for name, page := range readFiles(t, "*.md") {
		for _, block := range goBlock.FindAllStringSubmatch(page, -1) {
			if !containsBlock(code, block[1]) {
				t.Errorf("%s: no test file of this package contains\n%s", name, block[1])
			}
		}
	}
}

func containsBlock(code map[string]string, block string) bool {
	for _, file := range code {
		if strings.Contains(file, block) {
			return true
		}
	}
	return false
}

// readFiles returns the contents of the files that match a pattern, by name.
func readFiles(t *testing.T, pattern string) map[string]string {
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
