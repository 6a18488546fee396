package calls

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/perdure/perdure/analysis/internal/api"
	"github.com/perdure/perdure/analysis/internal/rules"
	"github.com/perdure/perdure/analysis/internal/source"
	"github.com/perdure/perdure/analysis/internal/syntax"
)

func (ck *checker) compensates(c *ast.CallExpr) {
	if d, ok := ck.stack[len(ck.stack)-1].(*ast.DeferStmt); !ok || d.Call != c {
		ck.Report(rules.Compensation, c.Pos(), "",
			ck.function.Name+" calls perdure.Compensate without deferring it directly")
	}
	address, ok := ast.Unparen(c.Args[1]).(*ast.UnaryExpr)
	if !ok {
		return
	}
	v := ck.Variable(address.X)
	if v == nil || syntax.PackageVar(v) != nil ||
		slices.Contains(slices.Collect(ck.signature().Results().Variables()), v) {
		return
	}
	what := ck.function.Name + " passes perdure.Compensate the address of " + v.Name() + ", which is not a named result"
	ck.Report(rules.Compensation, c.Args[1].Pos(), "", what)
}

// signature returns the signature of the innermost function.
func (ck *checker) signature() *types.Signature {
	for _, around := range slices.Backward(ck.stack) {
		if l, ok := around.(*ast.FuncLit); ok {
			if sig, ok := ck.TypeOf(l).(*types.Signature); ok {
				return sig
			}
		}
	}
	return ck.function.Sig
}

// deferred checks the calls of a deferred function.
func (ck *checker) deferred(d *ast.DeferStmt) {
	l, ok := ast.Unparen(d.Call.Fun).(*ast.FuncLit)
	if !ok {
		ck.deferredCall(d.Call, d.Pos())
		return
	}
	if ck.waitsWithin(l.Body) {
		return
	}
	inspect(ck.Package, l.Body, func(n ast.Node) {
		if c, ok := n.(*ast.CallExpr); ok {
			ck.deferredCall(c, c.Pos())
		}
	})
}

// deferredCall checks a deferred call and the function that it calls.
func (ck *checker) deferredCall(c *ast.CallExpr, pos token.Pos) {
	callee := ck.Callee(c)
	if callee == nil || api.Is(callee, "Compensate") {
		return
	}
	if api.DoesThroughContext(callee) != "" {
		ck.waitsWithin(c)
		return
	}
	d := ck.Declared[callee]
	if d == nil {
		return
	}
	own := api.ContextParam(callee.Signature())
	if own != nil && !slices.ContainsFunc(c.Args, ck.mayBeCancelled) {
		return
	}
	for _, w := range waitsIn(ck.Package, d.Body) {
		if ck.mayBeCancelledIn(own, w.through) {
			ck.Report(rules.Compensation, pos, "", ck.function.Name+" defers "+ck.Display(callee)+", which "+w.what+
				" with a context that may be cancelled")
			return
		}
	}
}

// waitsWithin reports the first wait of a deferred function whose context may be cancelled.
func (ck *checker) waitsWithin(body ast.Node) bool {
	for _, w := range waitsIn(ck.Package, body) {
		if ck.mayBeCancelled(w.through) {
			ck.Report(rules.Compensation, w.through.Pos(), "",
				ck.function.Name+" "+w.what+" in a deferred function with a context that may be cancelled")
			return true
		}
	}
	return false
}

// inspect visits code, except literals that are checked separately.
func inspect(p *source.Package, body ast.Node, visit func(ast.Node)) {
	ast.Inspect(body, func(n ast.Node) bool {
		if l, ok := n.(*ast.FuncLit); ok && isSeparate(p, l) {
			return false
		}
		visit(n)
		return true
	})
}

// wait is a call that does nothing after its context is cancelled.
type wait struct {
	through ast.Expr
	what    string
}

// waitsIn returns the waits of code.
func waitsIn(p *source.Package, body ast.Node) (all []wait) {
	inspect(p, body, func(n ast.Node) {
		c, ok := n.(*ast.CallExpr)
		if !ok || len(c.Args) == 0 {
			return
		}
		if does := api.DoesThroughContext(p.Callee(c)); does != "" {
			all = append(all, wait{c.Args[0], does})
		}
	})
	return all
}

// mayBeCancelled reports whether an expression is a context that may be cancelled.
func (ck *checker) mayBeCancelled(e ast.Expr) bool { return ck.mayBeCancelledIn(nil, e) }

// mayBeCancelledIn is like mayBeCancelled, in a function whose parameter may be cancelled.
func (ck *checker) mayBeCancelledIn(parameter *types.Var, e ast.Expr) bool {
	return api.IsContext(ck.TypeOf(e)) && !newContextTrace(ck.Package, parameter).isSafe(e)
}
