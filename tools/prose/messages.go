package main

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Methods that define a flag of pflag or flag, and functions that print.
var (
	flagMethod = regexp.MustCompile(
		`^(String|Bool|U?int|U?int64|Int|Int64|Duration|StringSlice|StringArray|StringToString|Count|Float64|Func|Text)?(Var|Slice)?P?F?$`,
	)
	printMethod = regexp.MustCompile(`^F?[Pp]rint(f|ln)?$`)
)

// flagSets are the names of receivers that define flags.
var flagSets = []string{"Flags", "PersistentFlags", "flags", "flag"}

// logMethods are the methods of slog.Logger by the position of the message among their arguments.
var logMethods = map[string]int{
	"Debug": 0, "Info": 0, "Warn": 0, "Error": 0,
	"DebugContext": 1, "InfoContext": 1, "WarnContext": 1, "ErrorContext": 1,
	"Log": 2, "LogAttrs": 2,
}

// call adds the message of a call that makes an error, logs, defines a flag or, in a command, prints.
func (g *goFile) call(c *ast.CallExpr) {
	f, is := c.Fun.(*ast.SelectorExpr)
	if !is || len(c.Args) == 0 {
		return
	}
	name, on := f.Sel.Name, receiver(f.X)
	at, isLog := logMethods[name]
	switch {
	case makesError(on, name):
		g.message(failures, c.Args[0])
	case isLog && on != "t" && on != "tb" && at < len(c.Args): // t and tb are names of tests
		g.message(logs, c.Args[at])
	case len(c.Args) > 2 && slices.Contains(flagSets, on) && flagMethod.MatchString(name):
		g.message(cli, c.Args[len(c.Args)-1])
	case on == "fmt" && printMethod.MatchString(name) && isCommand(g.path):
		for _, a := range c.Args {
			g.message(cli, a)
		}
	}
}

func makesError(on, name string) bool {
	return on == "fmt" && name == "Errorf" || on == "errors" && name == "New"
}

// isCommand reports whether a file belongs to a program that users run.
func isCommand(path string) bool {
	return strings.HasPrefix(path, "cmd/")
}

// receiver returns the last name of the receiver of a call.
func receiver(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	case *ast.CallExpr:
		return receiver(x.Fun)
	}
	return ""
}

// command adds the help texts of a cobra.Command.
func (g *goFile) command(c *ast.CompositeLit) {
	if t, is := c.Type.(*ast.SelectorExpr); !is || t.Sel.Name != "Command" || receiver(t.X) != "cobra" {
		return
	}
	for _, e := range c.Elts {
		kv, is := e.(*ast.KeyValueExpr)
		if !is {
			continue
		}
		if key := receiver(kv.Key); slices.Contains([]string{"Use", "Short", "Long"}, key) {
			g.message(cli, kv.Value)
		}
	}
}

// errorMethod adds the texts of a method Error.
func (g *goFile) errorMethod(f *ast.FuncDecl) {
	if f.Recv == nil || f.Name.Name != "Error" || f.Body == nil || f.Type.Params.NumFields() > 0 {
		return
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if e, is := n.(*ast.BasicLit); is && e.Kind == token.STRING {
			g.message(failures, e)
		}
		return true
	})
}

// message adds a text line by line.
func (g *goFile) message(k kind, e ast.Expr) {
	text := literal(e)
	if !strings.ContainsFunc(text, func(r rune) bool { return r == ' ' }) {
		return // a name or a format without words
	}
	at := g.set.Position(e.Pos()).Line
	raw := multiline(e)
	p := passage{kind: k, path: g.path}
	for l := range strings.Lines(text) {
		p.lines = append(p.lines, line{at, strings.TrimSpace(l)})
		if raw {
			at++
		}
	}
	g.found = append(g.found, p)
}

// literal returns the text of string literals that are joined with +; parts that are not literals are left out.
func literal(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, err := strconv.Unquote(e.Value)
			if err == nil {
				return text
			}
		}
	case *ast.ParenExpr:
		return literal(e.X)
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return literal(e.X) + literal(e.Y)
		}
	case *ast.CallExpr: // strings.TrimSpace(`…`)
		if receiver(e.Fun) == "TrimSpace" && len(e.Args) == 1 {
			return literal(e.Args[0])
		}
	}
	return ""
}

// multiline reports whether each line of a text has a line of the source.
func multiline(e ast.Expr) bool {
	b, is := e.(*ast.BasicLit)
	return is && strings.HasPrefix(b.Value, "`")
}
