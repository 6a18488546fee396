package analysis

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

var compensation = &rule{
	id: "compensation",
	finds: "`Compensate` that is not deferred directly, or gets the address of a variable that is not " +
		"returned. Calls in deferred functions whose context may be cancelled, even a context in a struct: such " +
		"calls do nothing after a cancellation.",
	why: "the compensation does not run when it is needed",
	instead: "defer perdure.Compensate(ctx, &err, undo) with the named result err, or use perdure.WithoutCancel(ctx) " +
		"in the defer",
	misses: "Waits more than one function away from the defer; errors behind pointers; methods and contexts of " +
		"other packages; `WithoutCancel` contexts in fields and parameters.",
}

// deferring is a part of an orchestration's body that is run when it ends.
type deferring struct{ *inside }

// compensates looks at a call of Compensate.
func (in *deferring) compensates(c *ast.CallExpr) {
	if d, ok := in.stack[len(in.stack)-1].(*ast.DeferStmt); !ok || d.Call != c {
		in.tell(compensation, c.Pos(), "", in.node.name+" calls perdure.Compensate without deferring it directly")
	}
	address, ok := ast.Unparen(c.Args[1]).(*ast.UnaryExpr)
	if !ok {
		return
	}
	v := in.variable(address.X)
	if v == nil || global(v) != nil || slices.Contains(slices.Collect(in.signature().Results().Variables()), v) {
		return
	}
	what := in.node.name + " passes perdure.Compensate the address of " + v.Name() + ", which is not a named result"
	in.tell(compensation, c.Args[1].Pos(), "", what)
}

// signature is that of the innermost function.
func (in *inside) signature() *types.Signature {
	for _, around := range slices.Backward(in.stack) {
		if l, ok := around.(*ast.FuncLit); ok {
			if sig, ok := in.pass.TypesInfo.TypeOf(l).(*types.Signature); ok {
				return sig
			}
		}
	}
	return in.node.sig
}

// deferred looks at what a deferred function waits for.
func (in *deferring) deferred(d *ast.DeferStmt) {
	l, ok := ast.Unparen(d.Call.Fun).(*ast.FuncLit)
	if !ok {
		in.deferredCall(d.Call, d.Pos())
		return
	}
	if in.waitsWithin(l.Body) {
		return
	}
	in.inspect(l.Body, func(n ast.Node) {
		if c, ok := n.(*ast.CallExpr); ok {
			in.deferredCall(c, c.Pos())
		}
	})
}

// deferredCall looks at what a function waits for that is called when the function around it ends.
func (in *deferring) deferredCall(c *ast.CallExpr, pos token.Pos) {
	callee := calleeOf(in.pass.TypesInfo, c)
	if callee == nil || isOurs(callee, "Compensate") {
		return
	}
	if isOurs(callee, waits...) || isOurs(callee, activities...) || isOurs(callee, children...) || goesOut(callee) {
		in.waitsWithin(c)
		return
	}
	n := in.of[callee]
	if n == nil || n.sig == nil || n.body == nil {
		return
	}
	own := contextParam(n.sig)
	if own != nil && !slices.ContainsFunc(c.Args, in.mayBeCancelled) {
		return
	}
	for _, w := range in.waitsIn(n.body) {
		if in.mayBeCancelledIn(own, w.through) {
			in.tell(compensation, pos, "", in.node.name+" defers "+n.name+", which "+w.what+" with a context that may "+
				"be cancelled")
			return
		}
	}
}

// waitsWithin reports waits of a deferred function.
func (in *deferring) waitsWithin(body ast.Node) bool {
	for _, w := range in.waitsIn(body) {
		if in.mayBeCancelled(w.through) {
			in.tell(compensation, w.through.Pos(), "", in.node.name+" "+w.what+" in a deferred function with a "+
				"context that may be cancelled")
			return true
		}
	}
	return false
}

// inspect goes through a piece of code, but for functions that are judged by themselves.
func (in *deferring) inspect(body ast.Node, look func(ast.Node)) {
	ast.Inspect(body, func(n ast.Node) bool {
		if l, ok := n.(*ast.FuncLit); ok && in.ofItsOwn(l) {
			return false
		}
		look(n)
		return true
	})
}

// wait is what a piece of code does through a context, and comes to nothing when that is cancelled.
type wait struct {
	through ast.Expr
	what    string
}

// waitsIn are the waits of a piece of code.
func (in *deferring) waitsIn(body ast.Node) (all []wait) {
	in.inspect(body, func(n ast.Node) {
		c, ok := n.(*ast.CallExpr)
		if !ok || len(c.Args) == 0 {
			return
		}
		switch callee := calleeOf(in.pass.TypesInfo, c); {
		case isOurs(callee, waits...):
			all = append(all, wait{c.Args[0], "waits"})
		case isOurs(callee, raises...):
			all = append(all, wait{c.Args[0], "raises an event"})
		case isOurs(callee, sends...):
			all = append(all, wait{c.Args[0], "sends an update"})
		case isOurs(callee, activities...):
			all = append(all, wait{c.Args[0], "calls an activity"})
		case isOurs(callee, children...):
			all = append(all, wait{c.Args[0], "calls a sub-orchestration"})
		}
	})
	return all
}

// mayBeCancelled reports whether an expression is a context that something may cancel.
func (in *deferring) mayBeCancelled(e ast.Expr) bool { return in.mayBeCancelledIn(nil, e) }

// mayBeCancelledIn reports the same in a function that is called with a context that may be cancelled, by its
// parameter.
func (in *deferring) mayBeCancelledIn(parameter *types.Var, e ast.Expr) bool {
	return isContext(in.pass.TypesInfo.TypeOf(e)) && !newTracing(in.program, parameter).isSafe(e)
}
