package calls

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/perdure/perdure/analysis/internal/api"
	"github.com/perdure/perdure/analysis/internal/rules"
	"github.com/perdure/perdure/analysis/internal/syntax"
)

// compensates checks a call of Compensate.
func (in *checker) compensates(c *ast.CallExpr) {
	if d, ok := in.stack[len(in.stack)-1].(*ast.DeferStmt); !ok || d.Call != c {
		in.Report(rules.Compensation, c.Pos(), "",
			in.function.Name+" calls perdure.Compensate without deferring it directly")
	}
	address, ok := ast.Unparen(c.Args[1]).(*ast.UnaryExpr)
	if !ok {
		return
	}
	v := in.Variable(address.X)
	if v == nil || syntax.PackageVar(v) != nil ||
		slices.Contains(slices.Collect(in.signature().Results().Variables()), v) {
		return
	}
	what := in.function.Name + " passes perdure.Compensate the address of " + v.Name() + ", which is not a named result"
	in.Report(rules.Compensation, c.Args[1].Pos(), "", what)
}

// signature returns the signature of the innermost function.
func (in *checker) signature() *types.Signature {
	for _, around := range slices.Backward(in.stack) {
		if l, ok := around.(*ast.FuncLit); ok {
			if sig, ok := in.TypeOf(l).(*types.Signature); ok {
				return sig
			}
		}
	}
	return in.function.Sig
}

// deferred checks the calls of a deferred function.
func (in *checker) deferred(d *ast.DeferStmt) {
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

// deferredCall checks a deferred call and the function that it calls.
func (in *checker) deferredCall(c *ast.CallExpr, pos token.Pos) {
	callee := in.Callee(c)
	if callee == nil || api.Is(callee, "Compensate") {
		return
	}
	if api.DoesThroughContext(callee) != "" {
		in.waitsWithin(c)
		return
	}
	d := in.Declared[callee]
	if d == nil {
		return
	}
	own := api.ContextParam(callee.Signature())
	if own != nil && !slices.ContainsFunc(c.Args, in.mayBeCancelled) {
		return
	}
	for _, w := range in.waitsIn(d.Body) {
		if in.mayBeCancelledIn(own, w.through) {
			in.Report(rules.Compensation, pos, "", in.function.Name+" defers "+in.Display(callee)+", which "+w.what+
				" with a context that may be cancelled")
			return
		}
	}
}

// waitsWithin reports the first wait of a deferred function whose context may be cancelled.
func (in *checker) waitsWithin(body ast.Node) bool {
	for _, w := range in.waitsIn(body) {
		if in.mayBeCancelled(w.through) {
			in.Report(rules.Compensation, w.through.Pos(), "",
				in.function.Name+" "+w.what+" in a deferred function with a context that may be cancelled")
			return true
		}
	}
	return false
}

// inspect visits code, except literals that are checked separately.
func (in *checker) inspect(body ast.Node, visit func(ast.Node)) {
	ast.Inspect(body, func(n ast.Node) bool {
		if l, ok := n.(*ast.FuncLit); ok && in.isSeparate(l) {
			return false
		}
		visit(n)
		return true
	})
}

// wait is a call that does nothing once its context is cancelled.
type wait struct {
	through ast.Expr
	what    string
}

// waitsIn returns the waits of code.
func (in *checker) waitsIn(body ast.Node) (all []wait) {
	in.inspect(body, func(n ast.Node) {
		c, ok := n.(*ast.CallExpr)
		if !ok || len(c.Args) == 0 {
			return
		}
		if does := api.DoesThroughContext(in.Callee(c)); does != "" {
			all = append(all, wait{c.Args[0], does})
		}
	})
	return all
}

// mayBeCancelled reports whether an expression is a context that may be cancelled.
func (in *checker) mayBeCancelled(e ast.Expr) bool { return in.mayBeCancelledIn(nil, e) }

// mayBeCancelledIn is like mayBeCancelled, in a function whose parameter may be cancelled.
func (in *checker) mayBeCancelledIn(parameter *types.Var, e ast.Expr) bool {
	return api.IsContext(in.TypeOf(e)) && !newContextTrace(in.Package, parameter).isSafe(e)
}
