package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// line is a line of a text with its number in the file.
type line struct {
	number int
	text   string
}

// passage is a page, a comment or a message.
type passage struct {
	kind  kind
	path  string // from the repository's root
	lines []line
}

// skipped are folders without text for users.
var skipped = []string{"testdata", "tests", "node_modules", "target", "cdk.out", "site", "styles", "newapp"}

// collect returns all texts below a folder: its Markdown, and those of its Go files that are not tests.
func collect(root string) ([]passage, error) {
	var all []passage
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if file != root && (strings.HasPrefix(name, ".") || slices.Contains(skipped, name)) {
				return filepath.SkipDir
			}
			return nil
		}
		path, err := filepath.Rel(root, file)
		if err != nil {
			return fmt.Errorf("prose: %w", err)
		}
		var found []passage
		switch {
		case strings.HasSuffix(name, ".md"):
			found, err = ofPage(file, path)
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			found, err = ofGoFile(file, path)
		}
		all = append(all, found...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("prose: %w", err)
	}
	return all, nil
}

// ofPage returns a page without its code blocks and HTML comments.
func ofPage(file, path string) ([]passage, error) {
	b, err := os.ReadFile(file) //nolint:gosec // a file of this repository
	if err != nil {
		return nil, fmt.Errorf("prose: %w", err)
	}
	p := passage{kind: docs, path: filepath.ToSlash(path)}
	fenced := false
	number := 0
	for text := range strings.Lines(string(b)) {
		number++
		text = strings.TrimSpace(text)
		switch {
		case strings.HasPrefix(text, "```"):
			fenced = !fenced
		case !fenced && text != "" && !strings.HasPrefix(text, "<!--"):
			p.lines = append(p.lines, line{number, text})
		}
	}
	return []passage{p}, nil
}

func ofGoFile(file, path string) ([]passage, error) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("prose: %w", err)
	}
	g := &goFile{set: set, path: filepath.ToSlash(path)}
	g.comment(parsed.Doc)
	for _, d := range parsed.Decls {
		g.declaration(d)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			g.call(n)
		case *ast.CompositeLit:
			g.command(n)
		case *ast.FuncDecl:
			g.errorMethod(n)
		}
		return true
	})
	return g.found, nil
}

// goFile collects the texts of a Go file.
type goFile struct {
	set   *token.FileSet
	path  string
	found []passage
}

// comment adds a comment without its code blocks and directives.
func (g *goFile) comment(c *ast.CommentGroup) {
	if c == nil {
		return
	}
	p := passage{kind: comments, path: g.path}
	for _, part := range c.List {
		number := g.set.Position(part.Pos()).Line
		text := part.Text
		if block, is := strings.CutPrefix(text, "/*"); is {
			text = strings.TrimSuffix(block, "*/")
		}
		for l := range strings.Lines(text) {
			l = strings.TrimRight(l, "\n")
			body, is := strings.CutPrefix(l, "//")
			directive := is && body != "" && body[0] != ' ' && body[0] != '\t'
			code := strings.HasPrefix(body, "\t") ||
				strings.HasPrefix(body, "  ") && !strings.HasPrefix(strings.TrimSpace(body), "-")
			if !directive && !code {
				p.lines = append(p.lines, line{number, strings.TrimSpace(body)})
			}
			number++
		}
	}
	if len(p.lines) > 0 {
		g.found = append(g.found, p)
	}
}

func (g *goFile) declaration(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && (d.Recv == nil || exportedReceiver(d.Recv)) {
			g.comment(d.Doc)
		}
	case *ast.GenDecl:
		exported := false
		for _, s := range d.Specs {
			exported = g.spec(s) || exported
		}
		if exported {
			g.comment(d.Doc)
		}
	}
}

// spec adds the comments of an exported type, constant or variable, and reports whether it is one.
func (g *goFile) spec(s ast.Spec) bool {
	switch s := s.(type) {
	case *ast.TypeSpec:
		if !s.Name.IsExported() {
			return false
		}
		g.comment(s.Doc)
		g.comment(s.Comment)
		g.members(s.Type)
		return true
	case *ast.ValueSpec:
		if !slices.ContainsFunc(s.Names, (*ast.Ident).IsExported) {
			return false
		}
		g.comment(s.Doc)
		g.comment(s.Comment)
		return true
	}
	return false
}

// members adds the comments of a type's exported fields and methods.
func (g *goFile) members(t ast.Expr) {
	var list *ast.FieldList
	switch t := t.(type) {
	case *ast.StructType:
		list = t.Fields
	case *ast.InterfaceType:
		list = t.Methods
	default:
		return
	}
	for _, f := range list.List {
		if len(f.Names) == 0 || slices.ContainsFunc(f.Names, (*ast.Ident).IsExported) {
			g.comment(f.Doc)
			g.comment(f.Comment)
		}
	}
}

func exportedReceiver(r *ast.FieldList) bool {
	if len(r.List) == 0 {
		return false
	}
	exported := false
	ast.Inspect(r.List[0].Type, func(n ast.Node) bool {
		id, is := n.(*ast.Ident)
		exported = exported || is && id.IsExported()
		return !is
	})
	return exported
}
