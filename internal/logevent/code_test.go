package logevent_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// call is a call that writes a log line.
type call struct {
	at, level, message string
	event              string   // the identifier of the constant; empty without an event
	attributes         []string // keys without "event"; … for keys that are not constants
}

type eventSection struct {
	title  string
	events []event
}

type event struct{ constant, name, meaning, action string }

// module is the non-test code of the repository.
type module struct {
	set   *token.FileSet
	files []*ast.File
	// functions are the functions and methods of a package, by "package.name".
	functions map[string][]*ast.FuncDecl
	// constants are the values of string constants, by "package.name".
	constants map[string]string
}

// skipped lists folders without code that runs in a hub, and folders of test kits.
var skipped = []string{
	".git", "analysis", "bench", "docs", "examples", "infra", "node_modules", "testdata", "tests", "tools",
}

func parseModule(root string) (*module, error) {
	m := &module{set: token.NewFileSet(), functions: map[string][]*ast.FuncDecl{}, constants: map[string]string{}}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && (slices.Contains(skipped, name) || strings.HasSuffix(name, "test")):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(m.set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("parse: %w", err)
		}
		m.add(file)
		return nil
	})
	return m, err
}

func (m *module) add(file *ast.File) {
	m.files = append(m.files, file)
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			key := file.Name.Name + "." + d.Name.Name
			m.functions[key] = append(m.functions[key], d)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				v, ok := spec.(*ast.ValueSpec)
				if !ok || d.Tok != token.CONST {
					continue
				}
				for i, value := range v.Values {
					if text, ok := literal(value); ok {
						m.constants[file.Name.Name+"."+v.Names[i].Name] = text
					}
				}
			}
		}
	}
}

func literal(e ast.Expr) (string, bool) {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(l.Value)
	return text, err == nil
}

// events returns the constants of package logevent by declaration block.
func (m *module) events() (sections []eventSection) {
	for _, file := range m.files {
		if file.Name.Name != "logevent" {
			continue
		}
		for _, d := range file.Decls {
			block, ok := d.(*ast.GenDecl)
			if !ok || block.Tok != token.CONST {
				continue
			}
			s := eventSection{title: strings.TrimSuffix(strings.TrimSpace(block.Doc.Text()), ".")}
			for _, spec := range block.Specs {
				v := spec.(*ast.ValueSpec)
				e := event{constant: v.Names[0].Name, name: m.constants["logevent."+v.Names[0].Name]}
				doc := strings.Join(strings.Fields(v.Doc.Text()), " ")
				doc, ok := strings.CutPrefix(doc, e.constant+" means that ")
				if ok {
					e.meaning, e.action, _ = strings.Cut(doc, " Action: ")
				}
				s.events = append(s.events, e)
			}
			sections = append(sections, s)
		}
	}
	return sections
}

// levels are the levels of the methods of a logger.
var levels = map[string]string{"Debug": "debug", "Info": "info", "Warn": "warning", "Error": "error"}

// calls returns the calls that write log lines.
func (m *module) calls() (all []call) {
	for _, file := range m.files {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			in := scope{m, file.Name.Name, f.Body}
			ast.Inspect(f.Body, func(n ast.Node) bool {
				if c, ok := n.(*ast.CallExpr); ok {
					if logged, ok := in.logged(c); ok {
						all = append(all, logged)
					}
				}
				return true
			})
		}
	}
	return all
}

// scope is the function that contains a call.
type scope struct {
	m    *module
	pkg  string
	body *ast.BlockStmt
}

// logged returns the log line of a call, if the call is of a method of a logger.
func (in scope) logged(c *ast.CallExpr) (logged call, ok bool) {
	f, ok := c.Fun.(*ast.SelectorExpr)
	if !ok || isOther(f.X) {
		return call{}, false
	}
	var level string
	args := c.Args
	name, withContext := strings.CutSuffix(f.Sel.Name, "Context")
	switch {
	case levels[name] != "" && withContext && len(args) > 1:
		level, args = levels[name], args[1:]
	case levels[name] != "" && !withContext && len(args) > 0:
		level = levels[name]
	case (name == "Log" || name == "LogAttrs") && len(args) > 2:
		level, args = "any", args[2:]
	default:
		return call{}, false
	}
	logged = call{at: in.m.set.Position(c.Pos()).String(), level: level}
	logged.message, _ = literal(args[0])
	pairs := in.attributes(f.X)
	pairs = append(pairs, in.elements(args[1:], c.Ellipsis.IsValid())...)
	for _, p := range pairs {
		switch {
		case p.key == "event":
			if s, ok := p.value.(*ast.SelectorExpr); ok && fmt.Sprint(s.X) == "logevent" {
				logged.event = s.Sel.Name
			}
		case p.key != "_aws" && !slices.Contains(logged.attributes, p.key):
			logged.attributes = append(logged.attributes, p.key)
		}
	}
	return logged, true
}

// isOther reports whether a receiver is a test or a package that has functions with the same names.
func isOther(receiver ast.Expr) bool {
	name, ok := receiver.(*ast.Ident)
	return ok && slices.Contains([]string{"t", "tb", "http", "history"}, name.Name)
}

type attribute struct {
	key   string
	value ast.Expr
}

// unknown represents one or more attributes whose keys are not constants.
var unknown = attribute{key: "…"}

// attributes returns the attributes that a logger adds to its lines.
func (in scope) attributes(logger ast.Expr) []attribute {
	if name, ok := logger.(*ast.Ident); ok {
		return in.logger(name.Name)
	}
	c, ok := logger.(*ast.CallExpr)
	if !ok {
		return nil
	}
	if f, ok := c.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "With" {
		return append(in.attributes(f.X), in.elements(c.Args, c.Ellipsis.IsValid())...)
	}
	return in.returned(c)
}

// logger returns the attributes of a logger in a variable of the function.
func (in scope) logger(name string) (all []attribute) {
	ast.Inspect(in.body, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok && len(a.Lhs) == 1 && isNamed(a.Lhs[0], name) {
			all = append(all, in.attributes(a.Rhs[0])...)
		}
		return true
	})
	return all
}

// returned returns the attributes of a logger or slice that a function of the same package returns.
func (in scope) returned(c *ast.CallExpr) (all []attribute) {
	f, ok := c.Fun.(*ast.SelectorExpr)
	if !ok {
		return []attribute{unknown}
	}
	for _, d := range in.m.functions[in.pkg+"."+f.Sel.Name] {
		of := scope{in.m, in.pkg, d.Body}
		ast.Inspect(d.Body, func(n ast.Node) bool {
			if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) == 1 {
				switch r := r.Results[0].(type) {
				case *ast.CompositeLit:
					all = append(all, of.elements(r.Elts, false)...)
				case *ast.CallExpr:
					all = append(all, of.attributes(r)...)
				}
			}
			return true
		})
	}
	return all
}

// elements returns the attributes in the arguments of a call or in the elements of a slice.
func (in scope) elements(list []ast.Expr, spread bool) (all []attribute) {
	if spread {
		last := len(list) - 1
		return append(in.elements(list[:last], false), in.slice(list[last])...)
	}
	for i := 0; i+1 < len(list); i += 2 {
		all = append(all, attribute{in.key(list[i]), list[i+1]})
	}
	return all
}

// slice returns the attributes in a slice: a literal, a result of append, or a variable of the function.
func (in scope) slice(e ast.Expr) []attribute {
	switch e := e.(type) {
	case *ast.CompositeLit:
		return in.elements(e.Elts, false)
	case *ast.CallExpr:
		if f, ok := e.Fun.(*ast.Ident); ok && f.Name == "append" {
			return append(in.slice(e.Args[0]), in.elements(e.Args[1:], e.Ellipsis.IsValid())...)
		}
		return in.returned(e)
	case *ast.Ident:
		return in.variable(e.Name)
	default:
		return []attribute{unknown}
	}
}

func (in scope) variable(name string) (all []attribute) {
	ast.Inspect(in.body, func(n ast.Node) bool {
		a, ok := n.(*ast.AssignStmt)
		if !ok || !isNamed(a.Lhs[0], name) && (len(a.Lhs) < 2 || !isNamed(a.Lhs[1], name)) {
			return true
		}
		switch c, isCall := a.Rhs[0].(*ast.CallExpr); {
		case len(a.Lhs) > 1:
			all = append(all, unknown)
		case isCall && len(c.Args) > 0 && isNamed(c.Fun, "append") && isNamed(c.Args[0], name):
			all = append(all, in.elements(c.Args[1:], c.Ellipsis.IsValid())...)
		default:
			all = append(all, in.slice(a.Rhs[0])...)
		}
		return true
	})
	return all
}

func isNamed(e ast.Expr, name string) bool {
	i, ok := e.(*ast.Ident)
	return ok && i.Name == name
}

// key returns the key of an attribute.
func (in scope) key(e ast.Expr) string {
	text, ok := literal(e)
	switch e := e.(type) {
	case *ast.Ident:
		text, ok = in.m.constants[in.pkg+"."+e.Name]
	case *ast.SelectorExpr:
		text, ok = in.m.constants[fmt.Sprint(e.X)+"."+e.Sel.Name]
	}
	if !ok {
		return unknown.key
	}
	return text
}
