package guides_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// logLine is a line that the code of a hub logs.
type logLine struct{ level, text, at string }

// logRow is a row of the log lines of docs/operations.md: the lines that it is about, each with … for what it leaves out, and their level
// where it says one.
type logRow struct {
	lines []string
	level string
}

// Each log line of level warning or error has a row in docs/operations.md, and what each row is about is logged, at the level that it says.
func TestLogLinesHaveTheirRows(t *testing.T) {
	t.Parallel()
	logged, described := logLines(t), map[string]bool{}
	for _, row := range logRows(t) {
		for _, pattern := range row.lines {
			found := false
			for _, l := range logged {
				if !isAbout(pattern, l.text) {
					continue
				}
				found, described[l.text] = true, true
				if row.level != "" && row.level != l.level {
					t.Errorf("docs/operations.md has %q as %s, %s logs it as %s", pattern, row.level, l.at, l.level)
				}
			}
			if !found {
				t.Errorf("docs/operations.md has the line %q, which nothing logs", pattern)
			}
		}
	}
	for _, l := range logged {
		if (l.level == "warning" || l.level == "error") && !described[l.text] {
			t.Errorf("%s: docs/operations.md has no row for the %s %q", l.at, l.level, l.text)
		}
	}
}

// isAbout reports whether a line begins as a row says.
func isAbout(pattern, text string) bool {
	parts := strings.Split(pattern, "…")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(strings.TrimSpace(parts[i]))
	}
	return regexp.MustCompile("^" + strings.Join(parts, ".*")).MatchString(text)
}

var levelOfRow = regexp.MustCompile(` \((error|warning|info|debug)\)$`)

func logRows(t *testing.T) (rows []logRow) {
	t.Helper()
	page, err := os.ReadFile("../operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Log lines\n")
	section, _, _ = strings.Cut(section, "\n## ")
	_, table, ok := strings.Cut(section, "|---|---|---|\n")
	if !ok {
		t.Fatal("docs/operations.md has no table of log lines")
	}
	for line := range strings.Lines(table) {
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		var row logRow
		if m := levelOfRow.FindStringSubmatch(cell); m != nil {
			cell, row.level = strings.TrimSuffix(cell, m[0]), m[1]
		}
		row.lines = strings.Split(cell, " / ")
		rows = append(rows, row)
	}
	return rows
}

// logLines are those of the packages that run in a hub.
func logLines(t *testing.T) (lines []logLine) {
	t.Helper()
	for _, folder := range []string{"dispatch", "provider", "schedule", "lambdahandler", "httpapi", "client", "internal", "telemetry"} {
		err := filepath.WalkDir(filepath.Join("../..", folder), func(path string, d fs.DirEntry, err error) error {
			switch name := d.Name(); {
			case err != nil:
				return err
			case d.IsDir() && (name == "testdata" || strings.HasSuffix(name, "test") || strings.HasPrefix(name, "sim")):
				return fs.SkipDir
			case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
				return nil
			}
			in, err := logLinesOf(path)
			lines = append(lines, in...)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return lines
}

func logLinesOf(path string) (lines []logLine, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		var level string
		var operands []ast.Expr
		switch n := n.(type) {
		case *ast.CallExpr:
			if called, ok := n.Fun.(*ast.SelectorExpr); ok {
				level = levels[strings.TrimSuffix(called.Sel.Name, "Context")]
			}
			operands = n.Args
		case *ast.AssignStmt: // of a level and a text that are logged together
			operands = n.Rhs
		}
		text := ""
		for _, o := range operands {
			switch o := o.(type) {
			case *ast.SelectorExpr:
				if name, is := strings.CutPrefix(o.Sel.Name, "Level"); is && levels[name] != "" {
					level = levels[name]
				}
			case *ast.BasicLit:
				if text == "" && o.Kind == token.STRING {
					text, _ = strconv.Unquote(o.Value)
				}
			}
		}
		if level != "" && text != "" {
			lines = append(lines, logLine{level, text, set.Position(n.Pos()).String()})
		}
		return true
	})
	return lines, nil
}

// levels are the words of docs/operations.md by the names of slog's methods and levels.
var levels = map[string]string{"Error": "error", "Warn": "warning", "Info": "info", "Debug": "debug"}
