package source

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"

	"github.com/perdure/perdure/analysis/internal/rules"
)

const directive = "//perdure:ignore"

// ignore is a directive. It covers lines of a file.
type ignore struct {
	pos         token.Pos
	file        string
	first, last int
	rules       []string
	reason      string
	used        bool
}

// readIgnores finds the directives.
func (p *Package) readIgnores() {
	for _, file := range p.Pass.Files {
		for _, group := range file.Comments {
			for _, c := range group.List {
				if rest, ok := strings.CutPrefix(c.Text, directive); ok &&
					(rest == "" || rest[0] == ' ' || rest[0] == '\t') {
					p.addIgnore(file, group, c, rest)
				}
			}
		}
	}
}

// addIgnore reads a directive. A directive on a line of its own covers the line or the function that follows.
func (p *Package) addIgnore(file *ast.File, group *ast.CommentGroup, c *ast.Comment, rest string) {
	position := p.Pass.Fset.Position
	at := position(c.Pos())
	i := &ignore{pos: c.Pos(), file: at.Filename, first: at.Line, last: at.Line}
	if names, reason, _ := strings.Cut(strings.TrimSpace(rest), " "); names != "" {
		i.rules = strings.Split(names, ",")
		i.reason = strings.TrimSpace(strings.TrimLeft(reason, " -:"))
	}
	if next := position(group.End()).Line + 1; !codeOnLine(p.Pass.Fset, file, at.Line) {
		i.first, i.last = next, next
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && (f.Doc == group || position(f.Pos()).Line == next) {
				i.last = position(f.End()).Line
			}
		}
	}
	p.ignores = append(p.ignores, i)
}

func codeOnLine(fset *token.FileSet, file *ast.File, line int) bool {
	found := false
	ast.Inspect(file, func(n ast.Node) bool {
		switch n.(type) {
		case nil, *ast.Comment, *ast.CommentGroup:
			return false
		case *ast.File:
			return true
		}
		first, last := fset.Position(n.Pos()).Line, fset.Position(n.End()).Line
		if first == line || last == line {
			found = true
		}
		return !found && first <= line && line <= last
	})
	return found
}

// Ignored reports whether a directive covers a finding, and marks the directive as used. A directive without a reason
// covers nothing.
func (p *Package) Ignored(r *rules.Rule, pos token.Pos) bool {
	if r == rules.Ignore {
		return false
	}
	at := p.Pass.Fset.Position(pos)
	covered := false
	for _, i := range p.ignores {
		if i.file == at.Filename && i.first <= at.Line && at.Line <= i.last && i.reason != "" &&
			slices.Contains(i.rules, r.ID) {
			i.used, covered = true, true
		}
	}
	return covered
}

// ReportIgnores reports directives that are incomplete or unused. Call ReportIgnores after all other checks.
func (p *Package) ReportIgnores() {
	for _, i := range p.ignores {
		switch mistake := i.mistake(p.settings); {
		case mistake != "":
			p.Report(rules.Ignore, i.pos, "", mistake)
		case !i.used:
			p.Report(rules.Ignore, i.pos, "remove it",
				directive+" "+strings.Join(i.rules, ",")+" ignores no finding")
		}
	}
}

// mistake describes the mistake in a directive. It is empty if the directive is correct or its rules are disabled.
func (i *ignore) mistake(s *Settings) string {
	if len(i.rules) == 0 {
		return directive + " has no rule"
	}
	for _, id := range i.rules {
		r := rules.ByID(id)
		if r == nil {
			return directive + " has the unknown rule " + id
		}
		i.used = i.used || !s.enables(r)
	}
	if i.reason == "" {
		return directive + " " + strings.Join(i.rules, ",") + " has no reason"
	}
	return ""
}
