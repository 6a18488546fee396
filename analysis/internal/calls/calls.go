// Package calls finds wrong calls of package perdure: lost results, contexts of another scope, endless loops, and
// compensation that does not run.
package calls

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"

	"github.com/perdure/perdure/analysis/internal/api"
	"github.com/perdure/perdure/analysis/internal/rules"
	"github.com/perdure/perdure/analysis/internal/source"
	"github.com/perdure/perdure/analysis/internal/syntax"
)

// checker checks an orchestration function.
type checker struct {
	*source.Package

	function *source.Function
	stack    []ast.Node // nodes around the current one
}

// Check reports wrong calls in orchestration functions.
func Check(p *source.Package, functions []*source.Function) {
	for _, f := range functions {
		ck := &checker{Package: p, function: f}
		ast.Inspect(f.Body, func(part ast.Node) bool {
			if part == nil {
				ck.stack = ck.stack[:len(ck.stack)-1]
				return true
			}
			if l, ok := part.(*ast.FuncLit); ok && isSeparate(p, l) {
				return false
			}
			ck.check(part)
			ck.stack = append(ck.stack, part)
			return true
		})
	}
}

// isSeparate reports whether a literal is itself an activity or an orchestration function.
func isSeparate(p *source.Package, l *ast.FuncLit) bool {
	sig, ok := p.TypeOf(l).(*types.Signature)
	return !ok || api.IsActivity(sig) || api.ContextParam(sig) != nil
}

func (ck *checker) check(part ast.Node) {
	switch n := part.(type) {
	case *ast.ExprStmt:
		ck.dropped(n.X)
	case *ast.AssignStmt:
		if syntax.IsBlank(n.Lhs[len(n.Lhs)-1]) && len(n.Rhs) == 1 {
			ck.dropped(n.Rhs[0])
		}
	case *ast.CallExpr:
		ck.called(n)
	case *ast.DeferStmt:
		ck.deferred(n)
	case *ast.ForStmt:
		ck.loops(n)
	case *ast.IfStmt:
		ck.branches(n)
	case *ast.Ident:
		ck.usesContext(n)
	}
}

// dropped checks a call whose results are not used.
func (ck *checker) dropped(e ast.Expr) {
	c, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return
	}
	callee := ck.Callee(c)
	switch {
	case callee == nil || api.SendsMessage(callee):
	case api.IsFuture(ck.TypeOf(c)):
		ck.Report(rules.Unawaited, c.Pos(), "", ck.function.Name+" drops the future of "+ck.Display(callee))
	case api.Is(callee, "ContinueAsNew"):
		ck.Report(rules.ContinueAsNew, c.Pos(), "", ck.function.Name+" drops the error of perdure.ContinueAsNew")
	}
}

func (ck *checker) called(c *ast.CallExpr) {
	callee := ck.Callee(c)
	switch {
	case api.Is(callee, "CallActivity", "CallSubOrchestration") && len(c.Args) > 1:
		if what := ck.cannotBeIdentified(c.Args[1]); what != "" {
			ck.Report(rules.Unidentified, c.Args[1].Pos(), "", ck.function.Name+" calls "+what)
		}
	case api.Is(callee, "Compensate") && len(c.Args) == 3:
		ck.compensates(c)
	case api.Is(callee, "Version") && len(c.Args) == 4:
		ck.versions(c)
	case api.Is(callee, "SideEffect") && len(c.Args) == 2:
		if l, ok := ast.Unparen(c.Args[1]).(*ast.FuncLit); ok {
			ck.usesAnyContext(l)
		}
	case api.Is(callee, "SetQueryHandler"):
		ck.mayOnlyRead(c, "the query handler")
	case api.Is(callee, "WithValidator"):
		ck.mayOnlyRead(c, "the update validator")
	}
}

// mayOnlyRead checks the last argument of a call, a function that may only read.
func (ck *checker) mayOnlyRead(call *ast.CallExpr, what string) {
	reader, ok := ast.Unparen(call.Args[len(call.Args)-1]).(*ast.FuncLit)
	if !ok {
		return
	}
	ast.Inspect(reader.Body, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		callee := ck.Callee(c)
		passes := slices.ContainsFunc(c.Args, func(e ast.Expr) bool { return api.IsContext(ck.TypeOf(e)) })
		if callee != nil && callee.Pkg() != nil && callee.Pkg().Path() == api.Root &&
			(passes || api.Is(callee, "OrchestrationContext.SetCustomStatus")) {
			ck.Report(rules.Query, c.Pos(), "", what+" in "+ck.function.Name+" calls "+ck.Display(callee))
		}
		return true
	})
}

func (ck *checker) versions(c *ast.CallExpr) {
	if _, named := ast.Unparen(c.Args[1]).(*ast.Ident); !named && ck.constant(c.Args[1]) == nil {
		ck.Report(rules.Change, c.Args[1].Pos(), "",
			ck.function.Name+" calls perdure.Version with a change that is not a constant")
	}
	least, most := ck.constant(c.Args[2]), ck.constant(c.Args[3])
	if least != nil && most != nil && constant.Compare(least, token.GTR, most) {
		ck.Report(rules.Change, c.Args[2].Pos(), "", ck.function.Name+" calls perdure.Version with the empty range "+
			least.String()+" to "+most.String())
	}
}

// constant returns the value of a constant expression, or nil.
func (ck *checker) constant(e ast.Expr) constant.Value { return ck.Pass.TypesInfo.Types[e].Value }

// cannotBeIdentified describes a function that the engine cannot identify. It returns the empty string for other
// functions.
func (ck *checker) cannotBeIdentified(e ast.Expr) string {
	if v := ck.Variable(e); v != nil && syntax.PackageVar(v) == nil {
		all := ck.Assigned[v]
		if len(all) > 0 && !slices.ContainsFunc(all, func(e ast.Expr) bool { return !syntax.IsLiteral(e) }) {
			return "a function literal, " + v.Name()
		}
	}
	if syntax.IsLiteral(e) {
		return "a function literal"
	}
	if f := ck.Used(e); f != nil {
		if recv := f.Signature().Recv(); recv != nil && types.IsInterface(recv.Type()) {
			return ck.Display(f) + ", a method of an interface"
		}
	}
	return ""
}

// isScope reports whether a variable may contain a scope that the function created.
func (ck *checker) isScope(v *types.Var) bool {
	return slices.ContainsFunc(ck.Assigned[v], func(e ast.Expr) bool {
		c, ok := ast.Unparen(e).(*ast.CallExpr)
		return ok && api.Is(ck.Callee(c), "WithCancel", "WithTimeout", "WithoutCancel")
	})
}

// usesContext reports the context of an outer function in a function that has its own context.
func (ck *checker) usesContext(id *ast.Ident) {
	v, ok := ck.Pass.TypesInfo.Uses[id].(*types.Var)
	if !ok || !api.IsContext(v.Type()) {
		return
	}
	for outer := ck.function.Outer; outer != nil && outer.Sig != nil; outer = outer.Outer {
		if api.ContextParam(outer.Sig) == v && !ck.isScope(v) {
			ck.Report(rules.Scope, id.Pos(), "", ck.function.Name+" uses "+v.Name()+", the context of "+outer.Name)
		}
	}
}

// usesAnyContext reports contexts in a function that runs outside replay.
func (ck *checker) usesAnyContext(l *ast.FuncLit) {
	ast.Inspect(l.Body, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && api.IsContext(ck.TypeOf(id)) {
			ck.Report(rules.Scope, id.Pos(), "read the values before the call",
				"the function of perdure.SideEffect uses "+id.Name)
		}
		return true
	})
}

// branches checks for decisions that depend on whether the code is replayed.
func (ck *checker) branches(n *ast.IfStmt) {
	reads := syntax.Contains(n.Cond, func(part ast.Node) bool {
		c, ok := part.(*ast.CallExpr)
		return ok && api.Is(ck.Callee(c), "OrchestrationContext.IsReplaying")
	})
	if reads && (ck.decides(n.Body) || n.Else != nil && ck.decides(n.Else)) {
		ck.Report(rules.Replaying, n.Pos(), "", ck.function.Name+" depends on ctx.IsReplaying")
	}
}

// decides reports whether code uses a context or returns.
func (ck *checker) decides(body ast.Node) bool {
	return syntax.Contains(body, func(n ast.Node) bool {
		_, returns := n.(*ast.ReturnStmt)
		c, ok := n.(*ast.CallExpr)
		return returns || ok && ck.UsesContext(c)
	})
}
