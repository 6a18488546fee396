package analysis

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// isMapIterator reports whether an expression is a call of maps.Keys, Values or All.
func (w *walk) isMapIterator(e ast.Expr) bool {
	c, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	f := calleeOf(w.pass.TypesInfo, c)
	return f != nil && slices.Contains([]string{"maps.Keys", "maps.Values", "maps.All"}, f.FullName())
}

// collectsMap notes a slice that is made of a map's keys or values, and not sorted.
func (w *walk) collectsMap(c *ast.CallExpr, callee *types.Func) {
	if callee == nil || callee.FullName() != "slices.Collect" || len(c.Args) != 1 || !w.isMapIterator(c.Args[0]) || w.isSorted() {
		return
	}
	w.unsorted(c.Pos(), "makes a slice of a map in no order")
}

func (w *walk) unsorted(pos token.Pos, what string) {
	before := len(w.node.own)
	w.does(mapOrder, pos, what, "")
	if len(w.node.own) > before {
		w.node.own[before].Unsorted = true
	}
}

// mapRange is a range over a map that is looked at.
type mapRange struct {
	*walk

	loop *ast.RangeStmt
	// tainted are the variables that say where the loop is.
	tainted map[types.Object]bool
	// kept: an outer variable has been given such a value.
	kept string
}

// rangesOverMap notes what lets the order of a map decide.
func (w *walk) rangesOverMap(loop *ast.RangeStmt) {
	r := &mapRange{walk: w, loop: loop, tainted: map[types.Object]bool{}}
	for _, e := range []ast.Expr{loop.Key, loop.Value} {
		if id, ok := e.(*ast.Ident); ok {
			r.tainted[w.pass.TypesInfo.ObjectOf(id)] = true
		}
	}
	ast.Inspect(loop.Body, func(n ast.Node) bool {
		if _, lit := n.(*ast.FuncLit); lit {
			return false
		}
		return r.look(n)
	})
}

// look notes what one part of the loop's body does, and reports whether to look inside.
func (r *mapRange) look(n ast.Node) bool {
	const over = "ranges over a map and "
	switch n := n.(type) {
	case *ast.AssignStmt:
		r.assigns(n)
	case *ast.CallExpr:
		if what := r.calls(n); what != "" {
			r.does(mapOrder, n.Pos(), over+what, "")
		}
	case *ast.ReturnStmt:
		if slices.ContainsFunc(n.Results, r.depends) {
			r.does(mapOrder, n.Pos(), over+"returns what it is at", "")
		}
	case *ast.BranchStmt:
		if n.Tok == token.BREAK && r.kept != "" && r.leaves(n) {
			r.does(mapOrder, n.Pos(), over+"stops with what it is at in "+r.kept, "")
		}
	}
	return true
}

// assigns follows where the loop is into variables, and notes slices and texts that grow in its order.
func (r *mapRange) assigns(a *ast.AssignStmt) {
	for i, left := range a.Lhs {
		right := a.Rhs[min(i, len(a.Rhs)-1)]
		id, isName := ast.Unparen(left).(*ast.Ident)
		obj := types.Object(nil)
		if isName {
			obj = r.pass.TypesInfo.ObjectOf(id)
		}
		switch {
		case r.appends(right) && !r.inside(left):
			if !r.sortedBehind(left) {
				r.unsorted(a.Pos(), "ranges over a map and appends to "+types.ExprString(left))
			}
		case obj == nil || !r.depends(right):
			continue
		case a.Tok == token.DEFINE:
			r.tainted[obj] = true
		case a.Tok == token.ADD_ASSIGN && isText(obj.Type()) && !r.inside(left):
			r.does(mapOrder, a.Pos(), "ranges over a map and writes text", "")
		case a.Tok == token.ASSIGN && !r.inside(left):
			r.kept = obj.Name()
		}
	}
}

// calls says what a call lets the order decide; it is empty when nothing.
func (r *mapRange) calls(c *ast.CallExpr) string {
	callee := calleeOf(r.pass.TypesInfo, c)
	if callee == nil {
		return ""
	}
	name := callee.Name()
	switch {
	case isOurs(callee, "OrchestrationContext.SetCustomStatus", "OrchestrationContext.NewUUID", "OrchestrationContext.Rand", "Future.Await", "Future.Cancel", "ActivityRef.Call"):
		return "calls " + r.display(callee)
	case slices.ContainsFunc(c.Args, func(e ast.Expr) bool { return isContext(r.pass.TypesInfo.TypeOf(e)) }):
		return "calls " + r.display(callee)
	case callee.Pkg() != nil && callee.Pkg().Path() == "fmt" && strings.HasPrefix(name, "Fprint") && !r.inside(c.Args[0]):
		return "writes text"
	case strings.HasPrefix(name, "Write") && callee.Signature().Recv() != nil:
		if sel, ok := ast.Unparen(c.Fun).(*ast.SelectorExpr); ok && !r.inside(sel.X) {
			return "writes text"
		}
	}
	return ""
}

// depends reports whether an expression says where the loop is.
func (r *mapRange) depends(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && r.tainted[r.pass.TypesInfo.Uses[id]] {
			found = true
		}
		return !found
	})
	return found
}

// inside reports whether an expression is of a variable that each round has anew, or of the map's own elements.
func (r *mapRange) inside(e ast.Expr) bool {
	for {
		switch x := ast.Unparen(e).(type) {
		case *ast.Ident:
			obj := r.pass.TypesInfo.ObjectOf(x)
			return x.Name == "_" || obj != nil && r.loop.Pos() <= obj.Pos() && obj.Pos() < r.loop.End()
		case *ast.IndexExpr:
			if r.depends(x.Index) {
				return true // each key has its own
			}
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.UnaryExpr:
			e = x.X
		default:
			return false
		}
	}
}

func (r *mapRange) appends(e ast.Expr) bool {
	c, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	b, ok := r.pass.TypesInfo.Uses[nameIn(c.Fun)].(*types.Builtin)
	return ok && b.Name() == "append"
}

// leaves reports whether a break is the loop's own.
func (r *mapRange) leaves(b *ast.BranchStmt) bool {
	own := true
	ast.Inspect(r.loop.Body, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
			if b.Label == nil && n.Pos() <= b.Pos() && b.End() <= n.End() {
				own = false
			}
		}
		return true
	})
	return own
}

func isText(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsString != 0
}

// isSorted reports whether what the call that is looked at returns is sorted: by the call around it, or behind it.
func (w *walk) isSorted() bool {
	for _, around := range slices.Backward(w.stack) {
		switch n := around.(type) {
		case *ast.CallExpr:
			if w.sorts(n) {
				return true
			}
		case *ast.AssignStmt:
			return slices.ContainsFunc(n.Lhs, w.sortedBehind)
		case *ast.ValueSpec:
			return slices.ContainsFunc(n.Names, func(id *ast.Ident) bool { return w.sortedBehind(id) })
		case ast.Stmt:
			return false
		}
	}
	return false
}

// sortedBehind reports whether a slice is sorted later in the function.
func (w *walk) sortedBehind(slice ast.Expr) bool {
	text, found := types.ExprString(slice), false
	ast.Inspect(w.node.body, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if !ok || found || c.Pos() < slice.Pos() || !w.sorts(c) {
			return !found
		}
		for _, arg := range c.Args {
			ast.Inspect(arg, func(n ast.Node) bool {
				if e, ok := n.(ast.Expr); ok && types.ExprString(e) == text {
					found = true
				}
				return !found
			})
		}
		return !found
	})
	return found
}

// sorts reports whether a call sorts: a function of slices or sort, or one that is named so.
func (w *walk) sorts(c *ast.CallExpr) bool {
	f := calleeOf(w.pass.TypesInfo, c)
	if f == nil {
		return false
	}
	if f.Pkg() != nil && f.Pkg().Path() == "sort" {
		return true
	}
	return strings.Contains(strings.ToLower(f.Name()), "sort")
}
