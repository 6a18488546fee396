package analysis

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// isMapIterator reports whether an expression is a call of maps.Keys, Values or All, or a variable that holds what they
// return.
func (w *walk) isMapIterator(e ast.Expr) bool {
	if makesMapIterator(w.pass.TypesInfo, e) {
		return true
	}
	v := w.variable(e)
	return v != nil && global(v) == nil && len(w.assigned[v]) > 0 &&
		!slices.ContainsFunc(w.assigned[v], func(e ast.Expr) bool { return !makesMapIterator(w.pass.TypesInfo, e) })
}

func makesMapIterator(info *types.Info, e ast.Expr) bool {
	c, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	f := calleeOf(info, c)
	return f != nil && slices.Contains([]string{"maps.Keys", "maps.Values", "maps.All"}, f.FullName())
}

// collectsMap notes a slice that is made of a map's keys or values, and not sorted.
func (w *walk) collectsMap(c *ast.CallExpr, callee *types.Func) {
	if callee == nil || w.isSorted() {
		return
	}
	switch callee.FullName() {
	case "slices.Collect", "slices.AppendSeq":
		if len(c.Args) == 0 || !w.isMapIterator(c.Args[len(c.Args)-1]) {
			return
		}
	case "(reflect.Value).MapKeys", "golang.org/x/exp/maps.Keys", "golang.org/x/exp/maps.Values":
	default:
		return
	}
	w.unsorted(c.Pos(), "makes an unsorted slice of a map")
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
	// around is what is around the part that is looked at, within the loop; literals how many functions that are called
	// where they are written.
	around   []ast.Node
	literals int
	// kept: an outer variable has been given such a value. last are those that each round gives one.
	kept string
	last []*ast.AssignStmt
	// single: how many keys the map has is asked, and it may be one. stops: a break tells what is kept. skips: a round
	// may be left before its end.
	single, stops, skips bool
}

const overMap = "ranges over a map and "

// rangesOverMap notes what lets the order of a map decide.
func (w *walk) rangesOverMap(loop *ast.RangeStmt) {
	r := &mapRange{walk: w, loop: loop, tainted: map[types.Object]bool{}}
	r.taint(loop.Key)
	r.taint(loop.Value)
	r.single = r.asksForOne()
	r.over(loop.Body)
	for _, a := range r.last {
		if !r.stops && !r.single {
			r.keepsLast(a)
		}
	}
}

// taint notes that a variable says where the loop is.
func (r *mapRange) taint(e ast.Expr) {
	if id, ok := e.(*ast.Ident); ok {
		if obj := r.pass.TypesInfo.ObjectOf(id); obj != nil {
			r.tainted[obj] = true
		}
	}
}

// over looks at a part of the loop. Functions are looked into where they are called.
func (r *mapRange) over(body ast.Node) {
	ast.Inspect(body, func(n ast.Node) bool {
		if n == nil {
			r.around = r.around[:len(r.around)-1]
			return true
		}
		if _, lit := n.(*ast.FuncLit); lit {
			return false
		}
		r.look(n)
		r.around = append(r.around, n)
		return true
	})
}

// look notes what one part of the loop's body does.
func (r *mapRange) look(n ast.Node) {
	switch n := n.(type) {
	case *ast.AssignStmt:
		r.assigns(n)
	case *ast.CallExpr:
		if what := r.calls(n); what != "" {
			r.does(mapOrder, n.Pos(), overMap+what, "")
		}
		r.callsLiteral(n)
	case *ast.ReturnStmt:
		if r.literals == 0 && !r.single && slices.ContainsFunc(n.Results, r.depends) {
			r.does(mapOrder, n.Pos(), overMap+"returns the current element", "")
		}
	case *ast.BranchStmt:
		r.branches(n)
	}
}

func (r *mapRange) branches(n *ast.BranchStmt) {
	switch {
	case n.Tok == token.CONTINUE:
		r.skips = true
	case n.Tok == token.BREAK && r.kept != "" && !r.single && r.leaves(n):
		r.stops = true
		r.does(mapOrder, n.Pos(), overMap+"stops with the current element in "+r.kept, "")
	}
}

// callsLiteral looks into a function that is called where it is written.
func (r *mapRange) callsLiteral(c *ast.CallExpr) {
	l, ok := ast.Unparen(c.Fun).(*ast.FuncLit)
	if !ok {
		return
	}
	if slices.ContainsFunc(c.Args, r.depends) {
		for _, field := range l.Type.Params.List {
			for _, name := range field.Names {
				r.taint(name)
			}
		}
	}
	r.literals++
	r.over(l.Body)
	r.literals--
}

// assigns follows where the loop is into variables, and notes what grows in its order, or is left with what came last.
func (r *mapRange) assigns(a *ast.AssignStmt) {
	for i, left := range a.Lhs {
		right, inside := a.Rhs[min(i, len(a.Rhs)-1)], r.inside(left)
		switch {
		case r.appends(right) && !inside:
			if !r.sortedBehind(left) {
				r.unsorted(a.Pos(), overMap+"appends to "+types.ExprString(left))
			}
		case !r.depends(right):
			continue
		case inside:
			r.taint(left)
		case r.addsText(a.Tok, left, right):
			r.does(mapOrder, a.Pos(), overMap+"writes text", "")
		case a.Tok == token.ASSIGN:
			r.gives(a, left, right)
		}
	}
}

// addsText reports whether an assignment makes a text longer.
func (r *mapRange) addsText(tok token.Token, left, right ast.Expr) bool {
	if t := r.pass.TypesInfo.TypeOf(left); t == nil || !isText(t) {
		return false
	}
	sum, ok := ast.Unparen(right).(*ast.BinaryExpr)
	return tok == token.ADD_ASSIGN ||
		tok == token.ASSIGN && ok && sum.Op == token.ADD && mentions(right, types.ExprString(left))
}

// gives notes that something outside of the loop is given what the loop is at.
func (r *mapRange) gives(a *ast.AssignStmt, left, right ast.Expr) {
	text := types.ExprString(left)
	if mentions(right, text) {
		r.kept = text
		return // a sum, or the greatest
	}
	if list := r.filled(left); list != nil {
		if !r.sortedBehind(list) {
			r.unsorted(a.Pos(), overMap+"fills "+types.ExprString(list))
		}
		return
	}
	r.kept = text
	r.taint(left)
	if len(a.Lhs) == 1 && !r.skips && !r.isConditional() {
		r.last = append(r.last, a)
	}
}

// calls says what a call lets the order decide; it is empty when nothing.
func (r *mapRange) calls(c *ast.CallExpr) string {
	callee := calleeOf(r.pass.TypesInfo, c)
	if callee == nil {
		return r.callsValue(c)
	}
	name := callee.Name()
	switch {
	case isOurs(callee, "OrchestrationContext.SetCustomStatus", "OrchestrationContext.NewUUID",
		"OrchestrationContext.Rand", "Future.Await", "Future.Cancel", "ActivityRef.Call"), r.asks(c):
		return "calls " + r.display(callee)
	case callee.Pkg() != nil && callee.Pkg().Path() == "fmt" && strings.HasPrefix(name, "Fprint") &&
		!r.inside(c.Args[0]):
		return "writes text"
	case strings.HasPrefix(name, "Write") && callee.Signature().Recv() != nil:
		if sel, ok := ast.Unparen(c.Fun).(*ast.SelectorExpr); ok && !r.inside(sel.X) {
			return "writes text"
		}
	}
	return ""
}

// callsValue is calls, of a variable that holds a function.
func (r *mapRange) callsValue(c *ast.CallExpr) string {
	asks := !isLiteral(c.Fun) && r.asks(c)
	if v := r.variable(c.Fun); v != nil && !asks {
		asks = slices.ContainsFunc(r.assigned[v], func(e ast.Expr) bool {
			l, ok := ast.Unparen(e).(*ast.FuncLit)
			return ok && asksWithin(r.program, l.Body)
		})
	}
	if !asks {
		return ""
	}
	return "calls " + types.ExprString(c.Fun)
}

// depends reports whether an expression says where the loop is.
func (r *mapRange) depends(e ast.Expr) bool {
	return isWithin(e, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		return ok && r.tainted[r.pass.TypesInfo.Uses[id]]
	})
}

// inside reports whether an expression is of a variable that each round has anew, or of the map's own elements.
func (r *mapRange) inside(e ast.Expr) bool {
	whole := ast.Unparen(e)
	for {
		switch x := ast.Unparen(e).(type) {
		case *ast.Ident:
			obj := r.pass.TypesInfo.ObjectOf(x)
			return x.Name == "_" || obj != nil && r.loop.Pos() <= obj.Pos() && obj.Pos() < r.loop.End() ||
				x != whole && r.tainted[obj]
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
	return isBuiltin(r.pass.TypesInfo, c, "append")
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
	text := types.ExprString(slice)
	return isWithin(w.node.body, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		return ok && c.Pos() >= slice.Pos() && w.sorts(c) && slices.ContainsFunc(c.Args, func(arg ast.Expr) bool {
			return mentions(arg, text)
		})
	})
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
