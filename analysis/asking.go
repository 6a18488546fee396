package analysis

import (
	"go/ast"
	"go/types"
	"slices"
)

// asking is the fact about a method that has its context in its struct: it asks for something through it.
type asking struct{}

// AFact marks asking as a fact.
func (*asking) AFact() {}

// String implements fmt.Stringer, for tests and debugging.
func (*asking) String() string { return "asks" }

// asks reports whether a call asks for something: it is given a context, or is of a method that asks through the one in
// its struct.
func (p *program) asks(c *ast.CallExpr) bool {
	return looks(p, func(a *asker) bool { return a.asks(c) })
}

// asksWithin reports whether a piece of code asks for something.
func asksWithin(p *program, body ast.Node) bool {
	return looks(p, func(a *asker) bool { return a.within(body) })
}

// isAsking reports whether a function is a method that asks through the context in its struct.
func isAsking(p *program, f *types.Func) bool {
	return looks(p, func(a *asker) bool { return a.isAsking(f) })
}

// asker looks for what asks, in methods one after the other.
type asker struct {
	*program

	// seen are the methods that are looked at already: each is looked at once, however many call it.
	seen map[*types.Func]bool
}

// looks lets a new asker look. Where it finds nothing, none of the methods that it has seen asks, which is kept: before
// the end that is known of none, since methods may call each other.
func looks(p *program, look func(*asker) bool) bool {
	a := &asker{p, map[*types.Func]bool{}}
	found := look(a)
	if !found {
		for f := range a.seen {
			p.askers[f] = false
		}
	}
	return found
}

func (a *asker) asks(c *ast.CallExpr) bool {
	if slices.ContainsFunc(c.Args, func(e ast.Expr) bool { return isContext(a.pass.TypesInfo.TypeOf(e)) }) {
		return true
	}
	callee := calleeOf(a.pass.TypesInfo, c)
	return callee != nil && a.isAsking(callee)
}

func (a *asker) isAsking(f *types.Func) bool {
	sig := f.Signature()
	if contextParam(sig) != nil || !isOrchestrationCode(sig) {
		return false
	}
	d := a.declared[f]
	if d == nil {
		return f.Pkg() != a.pass.Pkg && a.pass.ImportObjectFact(f, &asking{})
	}
	if known, ok := a.askers[f]; ok || a.seen[f] {
		return known
	}
	a.seen[f] = true
	if a.within(d.Body) {
		a.askers[f] = true
	}
	return a.askers[f]
}

func (a *asker) within(body ast.Node) bool {
	return isWithin(body, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		return ok && a.asks(c)
	})
}
