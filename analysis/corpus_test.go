package analysis_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	goanalysis "golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"github.com/perdure/perdure/analysis"
)

// The programs in testdata/wrong have exactly the findings of their want comments. Programs in right have no findings.
// Programs in missed are wrong, but have no findings. The documentation of the rules lists these cases.
func TestLinter_corpus_hasWantedFindings(t *testing.T) {
	t.Parallel()
	wants, lines := 0, 0
	for _, p := range findings(t, analysis.New(), corpus(t)...) {
		if !strings.Contains(p.path, "/wrong") && len(p.wants) > 0 {
			t.Errorf("%s has want comments, but is not in testdata/wrong", p.path)
		}
		wants, lines = wants+len(p.wants), lines+1
		for _, w := range p.wants {
			i := slices.IndexFunc(p.found, func(f finding) bool {
				return f.file == w.file && f.line == w.line && w.text.MatchString(f.text)
			})
			if i < 0 {
				t.Errorf("%s:%d: not found: %s", w.file, w.line, w.text)
				continue
			}
			p.found = slices.Delete(p.found, i, i+1)
		}
		for _, f := range p.found {
			t.Errorf("%s:%d: found: %s", f.file, f.line, f.text)
		}
	}
	t.Logf("%d findings in %d packages", wants, lines)
	if wants < 200 {
		t.Errorf("the corpus has only %d findings", wants)
	}
}

// corpus returns the packages in testdata, which the go command does not find by itself.
func corpus(t *testing.T) (dirs []string) {
	t.Helper()
	for _, pattern := range []string{"wrong", "right", "missed"} {
		found, err := filepath.Glob(filepath.Join("testdata", pattern, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range found {
			dirs = append(dirs, "./"+dir)
		}
	}
	return dirs
}

type finding struct {
	file string
	line int
	text string
}

type want struct {
	file string
	line int
	text *regexp.Regexp
}

type checked struct {
	path  string
	found []finding
	wants []want
}

// findings runs an analyzer over packages.
func findings(t *testing.T, a *goanalysis.Analyzer, patterns ...string) []checked {
	t.Helper()
	fset := token.NewFileSet()
	pkgs, err := packages.Load(&packages.Config{Mode: packages.LoadAllSyntax | packages.NeedModule, Fset: fset},
		patterns...)
	if err != nil {
		t.Fatal(err)
	}
	if packages.PrintErrors(pkgs) > 0 {
		t.Fatal("the programs do not build")
	}
	graph, err := checker.Analyze([]*goanalysis.Analyzer{a}, pkgs, nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []checked
	for _, act := range graph.Roots {
		if act.Err != nil {
			t.Fatalf("%s: %v", act.Package.PkgPath, act.Err)
		}
		l := checked{path: act.Package.PkgPath}
		for _, d := range act.Diagnostics {
			at := fset.Position(d.Pos)
			l.found = append(l.found, finding{at.Filename, at.Line, d.Message})
		}
		for _, file := range act.Package.Syntax {
			l.wants = append(l.wants, wantsOf(t, fset, file)...)
		}
		all = append(all, l)
	}
	return all
}

var wanted = regexp.MustCompile("`[^`]*`")

// wantsOf reads comments such as // want `regexp` `regexp`. "want above" applies to the line above.
func wantsOf(t *testing.T, fset *token.FileSet, file *ast.File) []want {
	t.Helper()
	var all []want
	for _, g := range file.Comments {
		for _, c := range g.List {
			_, rest, ok := strings.Cut(c.Text, "want ")
			if !ok {
				continue
			}
			at := fset.Position(c.Pos())
			if strings.HasPrefix(rest, "above ") {
				at.Line--
			}
			for _, text := range wanted.FindAllString(rest, -1) {
				plain, err := strconv.Unquote(text)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, want{at.Filename, at.Line, regexp.MustCompile(plain)})
			}
		}
	}
	return all
}

func (f finding) String() string { return fmt.Sprintf("%s:%d: %s", f.file, f.line, f.text) }
