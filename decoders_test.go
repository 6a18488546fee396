package perdure_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// parsers are the functions and methods of other packages that decode bytes.
var parsers = []string{
	"Decode", "DecodeAll", "DecodeString", "NewDecoder", "Parse", "ParseDuration", "ParseFloat", "ParseInt",
	"ParseMediaType", "ParseQuery", "ParseStrict", "ParseUint", "Atoi", "QuotedPrefix", "Sscanf", "Unmarshal", "Uvarint",
}

// callsParser matches the text of a call of a parser.
var callsParser = regexp.MustCompile(`\.(` + strings.Join(parsers, "|") + `)\b`)

// parserPackages are the packages of the parsers.
var parserPackages = []string{"base64", "binary", "fmt", "hex", "json", "mime", "strconv", "time", "ulid", "url", "xml"}

// Each function that decodes bytes has a fuzz target, or a reason for none, in testdata/decoders.txt. A line has a
// package, a target in that package or in another one, and the functions. A line without a target has the reason
// behind a dash, and * means all functions.
func TestDecoders_eachFunction_hasFuzzTarget(t *testing.T) {
	t.Parallel()
	table, err := os.ReadFile(filepath.Join("testdata", "decoders.txt"))
	if err != nil {
		t.Fatal(err)
	}
	listed, found := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(string(table)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		fields, reason, exempt := strings.Cut(line, " - ")
		names := strings.Fields(fields)
		if !exempt {
			names = slices.Delete(names, 1, 2)
			wantTarget(t, names[0], strings.Fields(line)[1])
		} else if reason == "" {
			t.Errorf("%s: no reason", line)
		}
		for _, name := range names[1:] {
			listed[names[0]+" "+name] = true
		}
	}
	for _, name := range decoders(t) {
		all := name[:strings.IndexByte(name, ' ')] + " *"
		if !listed[name] && !listed[all] {
			t.Errorf("%s decodes bytes: add a fuzz target and its line to testdata/decoders.txt", name)
		}
		found[name], found[all] = true, true
	}
	for name := range listed {
		if !found[name] {
			t.Errorf("testdata/decoders.txt: %s decodes nothing", name)
		}
	}
}

// wantTarget fails the test unless a package has the target, which can name another package: dir.FuzzX.
func wantTarget(t *testing.T, dir, target string) {
	t.Helper()
	if i := strings.LastIndexByte(target, '.'); i >= 0 {
		dir, target = target[:i], target[i+1:]
	}
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("\nfunc "+target+"(f *testing.F) {")) {
			return
		}
	}
	t.Errorf("testdata/decoders.txt: %s has no target %s", dir, target)
}

// decoders returns the functions that call a parser, each as its package and its name.
func decoders(t *testing.T) (found []string) {
	t.Helper()
	others := []string{"analysis", "bench", "docs", "examples", "infra", "node_modules", "testdata", "tests", "tools"}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && (slices.Contains(others, name) || len(name) > 1 && name[0] == '.'):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || !callsParser.Match(text) { // parsing takes most of the time
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && parses(f) {
				found = append(found, filepath.ToSlash(filepath.Dir(path))+" "+f.Name.Name)
			}
		}
		return nil
	})
	if err != nil || len(found) == 0 {
		t.Fatal(found, err)
	}
	return found
}

// parses reports whether a function calls a parser.
func parses(f *ast.FuncDecl) (found bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.SelectorExpr)
		if !ok || !slices.Contains(parsers, call.Sel.Name) {
			return true
		}
		found = found || slices.Contains(parserPackages, root(call.X))
		return true
	})
	return found
}

// root returns the package at the beginning of an expression such as base64.StdEncoding.Strict().
func root(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return root(x.X)
	case *ast.CallExpr:
		return root(x.Fun)
	default:
		return ""
	}
}
