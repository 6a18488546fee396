package source

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/perdure/perdure/analysis/internal/api"
	"github.com/perdure/perdure/analysis/internal/syntax"
)

// ContextUse is the fact about a method that uses the orchestration's context in its struct.
type ContextUse struct{}

// AFact marks ContextUse as a fact.
func (*ContextUse) AFact() {}

// String implements fmt.Stringer, for tests and debugging.
func (*ContextUse) String() string { return "uses the context in its struct" }

// UsesContext reports whether a call passes an orchestration's context, or calls a method that uses the context in its
// struct.
func (p *Package) UsesContext(c *ast.CallExpr) bool {
	return p.searchContextUse(func(s *contextSearch) bool { return s.call(c) })
}

// UsesContextWithin reports whether code has a call for which UsesContext is true.
func (p *Package) UsesContextWithin(code ast.Node) bool {
	return p.searchContextUse(func(s *contextSearch) bool { return s.within(code) })
}

// ExportContextUse exports ContextUse for a method that uses the context in its struct.
func (p *Package) ExportContextUse(f *types.Func) {
	if p.searchContextUse(func(s *contextSearch) bool { return s.method(f) }) {
		p.Pass.ExportObjectFact(f, &ContextUse{})
	}
}

// contextSearch searches calls and the methods that they call for uses of a context.
type contextSearch struct {
	*Package

	// seen is the set of methods that the search has entered, because methods may be recursive.
	seen map[*types.Func]bool
}

// searchContextUse runs a search. Only a search without a result proves that the methods that it entered use no
// context, since they may call each other.
func (p *Package) searchContextUse(search func(*contextSearch) bool) bool {
	s := &contextSearch{p, map[*types.Func]bool{}}
	found := search(s)
	if !found {
		for f := range s.seen {
			p.contextUse[f] = false
		}
	}
	return found
}

func (s *contextSearch) call(c *ast.CallExpr) bool {
	if slices.ContainsFunc(c.Args, func(e ast.Expr) bool { return api.IsContext(s.TypeOf(e)) }) {
		return true
	}
	callee := s.Callee(c)
	return callee != nil && s.method(callee)
}

func (s *contextSearch) method(f *types.Func) bool {
	sig := f.Signature()
	if api.ContextParam(sig) != nil || !api.IsOrchestrationCode(sig) {
		return false
	}
	d := s.Declared[f]
	if d == nil {
		return f.Pkg() != s.Pass.Pkg && s.Pass.ImportObjectFact(f, &ContextUse{})
	}
	if known, ok := s.contextUse[f]; ok || s.seen[f] {
		return known
	}
	s.seen[f] = true
	if s.within(d.Body) {
		s.contextUse[f] = true
	}
	return s.contextUse[f]
}

func (s *contextSearch) within(code ast.Node) bool {
	return syntax.Contains(code, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		return ok && s.call(c)
	})
}
