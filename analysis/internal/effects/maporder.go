package effects

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/perdure/perdure/analysis/internal/api"
	"github.com/perdure/perdure/analysis/internal/rules"
	"github.com/perdure/perdure/analysis/internal/syntax"
)

// isMapIterator reports whether an expression is a call of maps.Keys, Values or All, or a variable with their result.
func (w *walk) isMapIterator(e ast.Expr) bool {
	if w.makesMapIterator(e) {
		return true
	}
	v := w.Variable(e)
	return v != nil && syntax.PackageVar(v) == nil && len(w.Assigned[v]) > 0 &&
		!slices.ContainsFunc(w.Assigned[v], func(e ast.Expr) bool { return !w.makesMapIterator(e) })
}

func (w *walk) makesMapIterator(e ast.Expr) bool {
	c, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	f := w.Callee(c)
	return f != nil && slices.Contains([]string{"maps.Keys", "maps.Values", "maps.All"}, f.FullName())
}

// collectsMap records an unsorted slice of a map's keys or values.
func (w *walk) collectsMap(c *ast.CallExpr, callee *types.Func) {
	if callee == nil {
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
	if !w.isSorted() {
		w.recordUnsorted(c.Pos(), "makes an unsorted slice of a map")
	}
}

// recordUnsorted records an effect that the caller can remove by sorting.
func (w *walk) recordUnsorted(pos token.Pos, what string) {
	before := len(w.node.own)
	w.record(rules.MapOrder, pos, what, "")
	if len(w.node.own) > before {
		w.node.own[before].Unsorted = true
	}
}

// mapRange is a range over a map.
type mapRange struct {
	*walk

	loop *ast.RangeStmt
	// tainted are the variables that depend on the current element.
	tainted map[types.Object]bool
	// around lists the surrounding nodes within the loop. literals is the number of surrounding literals that are
	// called.
	around   []ast.Node
	literals int
	// kept is an outer variable that depends on the current element. last has the assignments of each iteration.
	kept   string
	last   []*ast.AssignStmt
	single bool // the function checks whether the map has one key
	stops  bool // a break with the current element was recorded
	skips  bool // a continue may end an iteration early
}

const overMap = "ranges over a map and "

// rangesOverMap records effects of a loop that depend on the order of a map.
func (w *walk) rangesOverMap(loop *ast.RangeStmt) {
	r := &mapRange{walk: w, loop: loop, tainted: map[types.Object]bool{}}
	r.taint(loop.Key)
	r.taint(loop.Value)
	r.single = r.checksForOne()
	r.over(loop.Body)
	for _, a := range r.last {
		if !r.stops && !r.single {
			r.keepsLast(a)
		}
	}
}

// taint marks a variable that depends on the current element.
func (r *mapRange) taint(e ast.Expr) {
	if id, ok := e.(*ast.Ident); ok {
		if obj := r.Pass.TypesInfo.ObjectOf(id); obj != nil {
			r.tainted[obj] = true
		}
	}
}

// over visits a part of the loop. It enters literals only at their call.
func (r *mapRange) over(body ast.Node) {
	ast.Inspect(body, func(n ast.Node) bool {
		if n == nil {
			r.around = r.around[:len(r.around)-1]
			return true
		}
		if _, lit := n.(*ast.FuncLit); lit {
			return false
		}
		r.visit(n)
		r.around = append(r.around, n)
		return true
	})
}

// visit records the effects of a part of the loop.
func (r *mapRange) visit(n ast.Node) {
	switch n := n.(type) {
	case *ast.AssignStmt:
		r.assigns(n)
	case *ast.CallExpr:
		if what := r.calls(n); what != "" {
			r.record(rules.MapOrder, n.Pos(), overMap+what, "")
		}
		r.callsLiteral(n)
	case *ast.ReturnStmt:
		if r.literals == 0 && !r.single && slices.ContainsFunc(n.Results, r.depends) {
			r.record(rules.MapOrder, n.Pos(), overMap+"returns the current element", "")
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
		r.record(rules.MapOrder, n.Pos(), overMap+"stops with the current element in "+r.kept, "")
	}
}

// callsLiteral visits a literal that is called directly.
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

// assigns follows the current element into variables, and records slices and texts in map order.
func (r *mapRange) assigns(a *ast.AssignStmt) {
	for i, left := range a.Lhs {
		right, inside := a.Rhs[min(i, len(a.Rhs)-1)], r.inside(left)
		switch {
		case r.appends(right) && !inside:
			if !r.sortedAfter(left) {
				r.recordUnsorted(a.Pos(), overMap+"appends to "+types.ExprString(left))
			}
		case !r.depends(right):
			continue
		case inside:
			r.taint(left)
		case r.addsText(a.Tok, left, right):
			r.record(rules.MapOrder, a.Pos(), overMap+"writes text", "")
		case a.Tok == token.ASSIGN:
			r.assignsOuter(a, left, right)
		}
	}
}

// addsText reports whether an assignment appends to a string.
func (r *mapRange) addsText(tok token.Token, left, right ast.Expr) bool {
	if t := r.TypeOf(left); t == nil || !isText(t) {
		return false
	}
	sum, ok := ast.Unparen(right).(*ast.BinaryExpr)
	return tok == token.ADD_ASSIGN ||
		tok == token.ASSIGN && ok && sum.Op == token.ADD && syntax.Mentions(right, types.ExprString(left))
}

// assignsOuter records that a variable outside the loop gets a value of the current element.
func (r *mapRange) assignsOuter(a *ast.AssignStmt, left, right ast.Expr) {
	text := types.ExprString(left)
	if syntax.Mentions(right, text) {
		r.kept = text
		return // for example a sum or a maximum
	}
	if list := r.filled(left); list != nil {
		if !r.sortedAfter(list) {
			r.recordUnsorted(a.Pos(), overMap+"fills "+types.ExprString(list))
		}
		return
	}
	r.kept = text
	r.taint(left)
	if len(a.Lhs) == 1 && !r.skips && !r.isConditional() {
		r.last = append(r.last, a)
	}
}

// calls describes the effect of a call that depends on the order, or returns the empty string.
func (r *mapRange) calls(c *ast.CallExpr) string {
	callee := r.Callee(c)
	if callee == nil {
		return r.callsValue(c)
	}
	name := callee.Name()
	switch {
	case api.Is(callee, "OrchestrationContext.SetCustomStatus", "OrchestrationContext.NewUUID",
		"OrchestrationContext.Rand", "Future.Await", "Future.Cancel", "ActivityRef.Call"), r.UsesContext(c):
		return "calls " + r.Display(callee)
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

// callsValue is like calls, for a variable with a function.
func (r *mapRange) callsValue(c *ast.CallExpr) string {
	uses := !syntax.IsLiteral(c.Fun) && r.UsesContext(c)
	if v := r.Variable(c.Fun); v != nil && !uses {
		uses = slices.ContainsFunc(r.Assigned[v], func(e ast.Expr) bool {
			l, ok := ast.Unparen(e).(*ast.FuncLit)
			return ok && r.UsesContextWithin(l.Body)
		})
	}
	if !uses {
		return ""
	}
	return "calls " + types.ExprString(c.Fun)
}

// depends reports whether an expression depends on the current element.
func (r *mapRange) depends(e ast.Expr) bool {
	return syntax.Contains(e, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		return ok && r.tainted[r.Pass.TypesInfo.Uses[id]]
	})
}

// inside reports whether an expression belongs to a variable of one iteration, or to an element of the map.
func (r *mapRange) inside(e ast.Expr) bool {
	whole := ast.Unparen(e)
	for {
		switch x := ast.Unparen(e).(type) {
		case *ast.Ident:
			obj := r.Pass.TypesInfo.ObjectOf(x)
			return x.Name == "_" || obj != nil && r.loop.Pos() <= obj.Pos() && obj.Pos() < r.loop.End() ||
				x != whole && r.tainted[obj]
		case *ast.IndexExpr:
			if r.depends(x.Index) {
				return true // each key has its own element
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
	return ok && r.IsBuiltin(c, "append")
}

// leaves reports whether a break ends the loop.
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

// isSorted reports whether the result of the current call is sorted, by a surrounding call or later.
func (w *walk) isSorted() bool {
	for _, around := range slices.Backward(w.stack) {
		switch n := around.(type) {
		case *ast.CallExpr:
			if w.sorts(n) {
				return true
			}
		case *ast.AssignStmt:
			return slices.ContainsFunc(n.Lhs, w.sortedAfter)
		case *ast.ValueSpec:
			return slices.ContainsFunc(n.Names, func(id *ast.Ident) bool { return w.sortedAfter(id) })
		case ast.Stmt:
			return false
		}
	}
	return false
}

// sortedAfter reports whether a slice is sorted later in the function.
func (w *walk) sortedAfter(slice ast.Expr) bool {
	text := types.ExprString(slice)
	return slices.ContainsFunc(w.sortingCalls(), func(c *ast.CallExpr) bool {
		return c.Pos() >= slice.Pos() && slices.ContainsFunc(c.Args, func(arg ast.Expr) bool {
			return syntax.Mentions(arg, text)
		})
	})
}

// sortingCalls returns the calls in the function that sort. It searches once per function, because each call whose
// result is assigned asks for them.
func (w *walk) sortingCalls() []*ast.CallExpr {
	if w.sorting == nil {
		w.sorting = []*ast.CallExpr{}
		ast.Inspect(w.node.Body, func(n ast.Node) bool {
			if c, ok := n.(*ast.CallExpr); ok && w.sorts(c) {
				w.sorting = append(w.sorting, c)
			}
			return true
		})
	}
	return w.sorting
}

// sorts reports whether a call sorts: it calls package sort, or a function with "sort" in its name.
func (w *walk) sorts(c *ast.CallExpr) bool {
	f := w.Callee(c)
	if f == nil {
		return false
	}
	if f.Pkg() != nil && f.Pkg().Path() == "sort" {
		return true
	}
	return strings.Contains(strings.ToLower(f.Name()), "sort")
}
