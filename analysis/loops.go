package analysis

import (
	"go/ast"
	"go/token"
	"go/types"
)

// loops looks at a loop without a condition.
func (in *inside) loops(f *ast.ForStmt) {
	if f.Cond != nil || !in.asksWithin(f.Body) {
		return
	}
	w := &wayOut{inside: in, loop: f}
	ast.Inspect(f.Body, w.look)
	switch {
	case !w.errors && !w.found:
		in.tell(endless, f.Pos(), endOnCancel, in.node.name+" loops without an end, and goes round for ever once it is cancelled, since no error of a wait leads out")
	case !w.found && !in.continuesAsNew():
		in.tell(endless, f.Pos(), "", in.node.name+" loops without an end")
	}
}

// endOnCancel is what to do about a loop that nothing ends.
const endOnCancel = "return the error of each wait, and begin anew from time to time: return perdure.ContinueAsNew[Out](ctx, in)"

func (in *inside) asksWithin(body ast.Node) bool {
	found := false
	ast.Inspect(body, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok && in.asks(c) {
			found = true
		}
		return !found
	})
	return found
}

// continuesAsNew reports whether the function, or one around it, begins anew.
func (in *inside) continuesAsNew() bool {
	found := false
	ast.Inspect(in.node.body, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			if f, ok := in.pass.TypesInfo.Uses[id].(*types.Func); ok && isOurs(f.Origin(), "ContinueAsNew") {
				found = true
			}
		}
		return !found
	})
	return found
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
		w.leads()
	case *ast.BranchStmt:
		if n.Tok == token.GOTO || n.Tok == token.BREAK && (n.Label != nil || !w.nested()) {
			w.leads()
		}
	}
	w.around = append(w.around, n)
	return true
}

// leads notes what it is that leads out here.
func (w *wayOut) leads() {
	if w.afterError() {
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

// afterError reports whether a condition around asks for an error.
func (w *wayOut) afterError() bool {
	for _, n := range w.around {
		if i, ok := n.(*ast.IfStmt); ok && w.isErrorTest(i.Cond) {
			return true
		}
	}
	return false
}

// isErrorTest reports whether a condition is err != nil, for any error.
func (w *wayOut) isErrorTest(cond ast.Expr) bool {
	b, ok := ast.Unparen(cond).(*ast.BinaryExpr)
	if !ok || b.Op != token.NEQ {
		return false
	}
	t := w.pass.TypesInfo.TypeOf(b.X)
	return t != nil && types.Identical(t, types.Universe.Lookup("error").Type())
}
