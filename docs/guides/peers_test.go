package guides_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// classes are the columns of the counts of bench/suites.md.
var classes = []string{"one call", "lines", "manual", "not supported", "n/a"}

var scenarioTable = regexp.MustCompile(`(?s)<!-- scenarios: ([^\n]*) -->\n(.*?)<!-- end -->`)

// The counts in bench/suites.md are the sums of its tables. `go test ./docs/guides -run PeerSuites` prints the correct
// counts if they differ.
func TestPeerSuites_counts_matchTables(t *testing.T) {
	t.Parallel()
	page := peers(t)
	var lines []string
	all := map[string]int{}
	for _, table := range scenarioTable.FindAllStringSubmatch(page, -1) {
		counts := countScenarios(t, table[2])
		for class, n := range counts {
			all[class] += n
		}
		lines = append(lines, countLine(table[1], counts))
	}
	lines = append(lines, countLine("total", all))
	if want := strings.Join(lines, "\n") + "\n<!-- end of counts -->"; !strings.Contains(page, want) {
		t.Errorf("the counts of bench/suites.md are not\n%s", want)
	}
}

func countScenarios(t *testing.T, table string) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for row := range strings.Lines(strings.SplitN(table, "\n", 3)[2]) { // without the header rows
		cells := strings.Split(strings.Trim(row, "| \n"), " | ")
		if len(cells) < 3 {
			t.Fatalf("too few cells: %s", row)
		}
		n, err := strconv.Atoi(cells[1])
		if err != nil {
			t.Fatalf("%s: %v", row, err)
		}
		counts[strings.Trim(cells[2], " |")] += n
	}
	return counts
}

func countLine(name string, counts map[string]int) string {
	line, sum := "| "+name, 0
	for _, class := range classes {
		line += fmt.Sprintf(" | %d", counts[class])
		sum += counts[class]
	}
	return line + fmt.Sprintf(" | %d |", sum)
}

var qualified = regexp.MustCompile(`\b(perdure|client|codec|httpapi|lambdahandler|perduretest|schedule)\.([A-Z]\w*)`)

// Pages name only functions, types, errors and methods of Client that exist. The changelog may name removed ones.
func TestPages_namedIdentifiers_exist(t *testing.T) {
	t.Parallel()
	there := map[string]bool{}
	for _, name := range []string{"perdure", "client", "codec", "httpapi", "lambdahandler", "perduretest", "schedule"} {
		folder := filepath.Join("../..", name)
		if name == "perdure" {
			folder = "../.."
		}
		declared(t, folder, func(ident string) { there[name+"."+ident] = true })
	}
	for path, page := range everyPage(t) {
		if filepath.Base(path) == "CHANGELOG.md" {
			continue
		}
		for _, name := range qualified.FindAllString(page, -1) {
			if !there[name] {
				t.Errorf("%s names %s, which is not there", path, name)
			}
		}
	}
}

// declared calls found for each exported name of a package and for each exported method of its type Client.
func declared(t *testing.T, folder string, found func(string)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no files, %v", folder, err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			declares(d, found)
		}
	}
}

func declares(d ast.Decl, found func(string)) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil || isClient(d.Recv.List[0].Type) {
			found(d.Name.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				found(s.Name.Name)
			case *ast.ValueSpec:
				for _, n := range s.Names {
					found(n.Name)
				}
			}
		}
	}
}

func isClient(receiver ast.Expr) bool {
	pointer, ok := receiver.(*ast.StarExpr)
	if !ok {
		return false
	}
	name, ok := pointer.X.(*ast.Ident)
	return ok && name.Name == "Client"
}

func peers(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../bench/suites.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}
