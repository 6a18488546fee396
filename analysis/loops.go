package analysis

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
)

// loops looks at a loop without a condition.
func (in *inside) loops(f *ast.ForStmt) {
	if !in.isAlways(f.Cond) || !asksWithin(in.program, f.Body) {
		return
	}
	w := &wayOut{inside: in, loop: f}
	ast.Inspect(f.Body, w.look)
	switch {
	case !w.errors && !w.found:
		in.tell(endless, f.Pos(), endOnCancel, in.node.name+" loops forever, even after it is cancelled, because no "+
			"error ends the loop")
	case !w.found && !in.continuesAsNew():
		in.tell(endless, f.Pos(), "", in.node.name+" loops forever")
	}
}

// isAlways reports whether a condition holds for ever: there is none, or it is a constant.
func (in *inside) isAlways(cond ast.Expr) bool {
	if cond == nil {
		return true
	}
	v := in.constant(cond)
	return v != nil && constant.BoolVal(v)
}

// endOnCancel is what to do about a loop that nothing ends.
const endOnCancel = "return the error of each wait, and continue as new from time to time: return " +
	"perdure.ContinueAsNew[Out](ctx, in)"

// continuesAsNew reports whether the function, or one around it, begins anew.
func (in *inside) continuesAsNew() bool {
	return isWithin(in.node.body, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok {
			return false
		}
		f, ok := in.pass.TypesInfo.Uses[id].(*types.Func)
		return ok && isOurs(f.Origin(), "ContinueAsNew")
	})
}

// wayOut looks for a way out of a loop.
type wayOut struct {
	*inside

	loop   *ast.ForStmt
	around []ast.Node
	// found: something other than an error leads out, errors: an error does.
	found, errors bool
}

func (w *wayOut) look(n ast.Node) bool {
	if n == nil {
		w.around = w.around[:len(w.around)-1]
		return true
	}
	switch n := n.(type) {
	case *ast.FuncLit:
		return false
	case *ast.ReturnStmt:
		w.leads(n)
	case *ast.BranchStmt:
		if n.Tok == token.GOTO || n.Tok == token.BREAK && (n.Label != nil || !w.nested()) {
			w.leads(n)
		}
	}
	w.around = append(w.around, n)
	return true
}

// leads notes what it is that leads out here.
func (w *wayOut) leads(out ast.Stmt) {
	if w.afterError(out) {
		w.errors = true
	} else {
		w.found = true
	}
}

// nested reports whether a break here would leave something within the loop.
func (w *wayOut) nested() bool {
	for _, n := range w.around {
		switch n.(type) {
		case *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
			return true
		}
	}
	return false
}

// afterError reports whether a way out is taken only when there is an error.
func (w *wayOut) afterError(out ast.Node) bool {
	for _, n := range slices.Backward(w.around) {
		switch n := n.(type) {
		case *ast.IfStmt:
			if out == n.Body && w.isErrorTest(n.Cond, token.NEQ) || out == n.Else && w.isErrorTest(n.Cond, token.EQL) {
				return true
			}
		case *ast.CaseClause:
			if w.areErrorTests(n.List) || w.isBehindSuccess(n.Body, out) {
				return true
			}
		case *ast.BlockStmt:
			if w.isBehindSuccess(n.List, out) {
				return true
			}
		}
		out = n
	}
	return false
}

// isBehindSuccess reports whether a statement is reached with an error alone: where there is none, one before it goes
// elsewhere.
func (w *wayOut) isBehindSuccess(list []ast.Stmt, out ast.Node) bool {
	for _, s := range list {
		if s == out {
			break
		}
		i, ok := s.(*ast.IfStmt)
		if !ok || !w.isErrorTest(i.Cond, token.EQL) || len(i.Body.List) == 0 {
			continue
		}
		switch i.Body.List[len(i.Body.List)-1].(type) {
		case *ast.BranchStmt, *ast.ReturnStmt:
			return true
		}
	}
	return false
}

// areErrorTests reports whether the conditions of a case are all err != nil.
func (w *wayOut) areErrorTests(conds []ast.Expr) bool {
	return len(conds) > 0 && !slices.ContainsFunc(conds, func(e ast.Expr) bool { return !w.isErrorTest(e, token.NEQ) })
}

// isErrorTest reports whether a condition compares any error with nil in this way.
func (w *wayOut) isErrorTest(cond ast.Expr, op token.Token) bool {
	b, ok := ast.Unparen(cond).(*ast.BinaryExpr)
	if !ok || b.Op != op {
		return false
	}
	t := w.pass.TypesInfo.TypeOf(b.X)
	return t != nil && types.Identical(t, types.Universe.Lookup("error").Type())
}
