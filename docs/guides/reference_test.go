package guides_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/perdure/perdure/history"
)

var (
	eventRow     = regexp.MustCompile("(?m)^\\| `([A-Z][A-Za-z]+)` \\| ")
	variable     = regexp.MustCompile(`^PERDURE_[A-Z_]+$`)
	variableRow  = regexp.MustCompile("(?m)^\\| (`PERDURE_[^|]*) \\| ")
	variableName = regexp.MustCompile("`(PERDURE_[A-Z_]+)`")
)

// notConfiguration has the variables of tests and examples, with their purpose.
var notConfiguration = map[string]string{
	"PERDURE_TEST_FAULT":             "a fault in a test application",
	"PERDURE_TEST_ENDPOINT":          "the endpoint of the local cloud in tests",
	"PERDURE_TEST_DYNAMODB_ENDPOINT": "the endpoint of DynamoDB Local in tests",
	"PERDURE_UNGUARDED":              "a switch of the test server of the web UI",
}

func readPage(t *testing.T, path string) string {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// The page lists the kinds of package history.
func TestEventReference_kinds_areThoseOfTheHistory(t *testing.T) {
	t.Parallel()
	var got, want []string
	for _, m := range eventRow.FindAllStringSubmatch(readPage(t, "../reference/events.md"), -1) {
		got = append(got, m[1])
	}
	for _, k := range history.Kinds() {
		want = append(want, string(k))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("docs/reference/events.md has the kinds\n%v, want\n%v", got, want)
	}
}

// The page lists the variables that the strings of the code name.
func TestConfigurationReference_variables_areThoseOfTheCode(t *testing.T) {
	t.Parallel()
	described := map[string]bool{}
	for _, row := range variableRow.FindAllStringSubmatch(readPage(t, "../reference/configuration.md"), -1) {
		for _, m := range variableName.FindAllStringSubmatch(row[1], -1) {
			described[m[1]] = true
		}
	}
	used := variablesOfTheCode(t)
	for name, at := range used {
		if !described[name] && notConfiguration[name] == "" {
			t.Errorf("%s: docs/reference/configuration.md has no row for %s", at, name)
		}
	}
	for name := range described {
		if used[name] == "" {
			t.Errorf("docs/reference/configuration.md has %s, which no code uses", name)
		}
	}
	for name := range notConfiguration {
		if used[name] == "" {
			t.Errorf("%s is skipped, but no code uses it", name)
		}
	}
}

// variablesOfTheCode returns the string constants that name variables, each with one place in the code. It ignores
// tests.
func variablesOfTheCode(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && (name == "testdata" || name == "node_modules" || len(name) > 2 && name[0] == '.'):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, _ := strconv.Unquote(lit.Value); variable.MatchString(text) {
					found[text] = set.Position(lit.Pos()).String()
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
