package analysis

import (
	"go/ast"
	"go/token"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// ignoring is the rule about what is written to ignore the others.
var ignoring = &rule{
	id:      "ignore",
	finds:   "`//perdure:ignore` without a reason, with an unknown rule, or without a finding.",
	why:     "a reader must know which rule is ignored and why",
	instead: "write //perdure:ignore RULE REASON on the line, above it, or above the function",
	misses:  "Meaningless reasons.",
}

const directive = "//perdure:ignore"

// ignores are the directives of a package.
type ignores struct {
	fset *token.FileSet
	all  []*ignore
}

// ignore is one directive: it covers lines of a file.
type ignore struct {
	pos         token.Pos
	file        string
	first, last int
	rules       []string
	reason      string
	used        bool
}

// readIgnores finds the directives.
func readIgnores(pass *analysis.Pass) *ignores {
	all := &ignores{fset: pass.Fset}
	for _, file := range pass.Files {
		for _, group := range file.Comments {
			for _, c := range group.List {
				if rest, ok := strings.CutPrefix(c.Text, directive); ok &&
					(rest == "" || rest[0] == ' ' || rest[0] == '\t') {
					all.add(file, group, c, rest)
				}
			}
		}
	}
	return all
}

// add reads a directive. On a line of its own it covers what begins behind its comment, a function as a whole.
func (s *ignores) add(file *ast.File, group *ast.CommentGroup, c *ast.Comment, rest string) {
	at := s.fset.Position(c.Pos())
	i := &ignore{pos: c.Pos(), file: at.Filename, first: at.Line, last: at.Line}
	if names, reason, _ := strings.Cut(strings.TrimSpace(rest), " "); names != "" {
		i.rules = strings.Split(names, ",")
		i.reason = strings.TrimSpace(strings.TrimLeft(reason, " -:"))
	}
	if next := s.fset.Position(group.End()).Line + 1; !codeOnLine(s.fset, file, at.Line) {
		i.first, i.last = next, next
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && (f.Doc == group || s.fset.Position(f.Pos()).Line == next) {
				i.last = s.fset.Position(f.End()).Line
			}
		}
	}
	s.all = append(s.all, i)
}

// codeOnLine reports whether anything but a comment is on a line.
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

// cover reports whether a finding is ignored, and remembers that the directive was of use. One without a reason ignores
// nothing.
func (s *ignores) cover(r *rule, pos token.Pos) bool {
	if r == ignoring {
		return false
	}
	at := s.fset.Position(pos)
	covered := false
	for _, i := range s.all {
		if i.file != at.Filename || at.Line < i.first || at.Line > i.last || i.reason == "" {
			continue
		}
		for _, id := range i.rules {
			if id == r.id {
				i.used, covered = true, true
			}
		}
	}
	return covered
}

// report tells of directives that say too little, or cover nothing.
func (s *ignores) report(p *program) {
	for _, i := range s.all {
		switch wrong := i.wrong(p.set); {
		case wrong != "":
			p.tell(ignoring, i.pos, "", wrong)
		case !i.used:
			p.tell(ignoring, i.pos, "remove it", directive+" "+strings.Join(i.rules, ",")+" ignores no finding")
		}
	}
}

// wrong says what is wrong with a directive; it is empty when nothing is, or its rules are not looked at.
func (i *ignore) wrong(s *settings) string {
	if len(i.rules) == 0 {
		return directive + " has no rule"
	}
	for _, id := range i.rules {
		r := ruleOf(id)
		if r == nil {
			return directive + " has the unknown rule " + id
		}
		i.used = i.used || !s.reports(r)
	}
	if i.reason == "" {
		return directive + " " + strings.Join(i.rules, ",") + " has no reason"
	}
	return ""
}
