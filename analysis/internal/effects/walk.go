package effects

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/perdure/perdure/analysis/internal/api"
	"github.com/perdure/perdure/analysis/internal/library"
	"github.com/perdure/perdure/analysis/internal/rules"
	"github.com/perdure/perdure/analysis/internal/source"
	"github.com/perdure/perdure/analysis/internal/syntax"
)

// walk visits the body of a node and records its effects and calls.
type walk struct {
	*Graph

	node  *node
	stack []ast.Node
	once  int // number of surrounding calls that run their arguments once
	// sorting is nil until sortingCalls has searched.
	sorting []*ast.CallExpr
}

func (w *walk) over(body ast.Node) {
	ast.Inspect(body, func(n ast.Node) bool {
		if n == nil {
			if c, ok := w.stack[len(w.stack)-1].(*ast.CallExpr); ok && syntax.IsOnce(w.Callee(c)) {
				w.once--
			}
			w.stack = w.stack[:len(w.stack)-1]
			return true
		}
		if !w.visit(n) {
			return false
		}
		w.stack = append(w.stack, n)
		return true
	})
}

// visit visits a part of the body and reports whether to visit its parts.
func (w *walk) visit(n ast.Node) bool {
	if w.once == 0 {
		for _, v := range w.Written(n) {
			w.record(rules.Globals, n.Pos(), "writes "+w.Display(v), "")
		}
	}
	switch n := n.(type) {
	case *ast.FuncLit:
		return w.literal(n)
	case *ast.CallExpr:
		return w.call(n)
	case *ast.GoStmt:
		w.record(rules.Goroutine, n.Pos(), "starts a goroutine", "")
		for _, arg := range n.Call.Args {
			w.over(arg)
		}
		return false
	case *ast.SendStmt:
		w.recordWait(n, "sends to a channel")
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			w.recordWait(n, "receives from a channel")
		}
	case *ast.SelectStmt:
		w.record(rules.Select, n.Pos(), "selects", "")
	case *ast.RangeStmt:
		w.ranges(n)
	case *ast.Ident:
		w.mention(n)
	}
	return true
}

// record records an effect, unless a directive ignores it.
func (w *walk) record(r *rules.Rule, pos token.Pos, what, instead string) {
	if !w.Ignored(r, pos) {
		w.node.own = append(w.node.own, found{effect{Rule: r.ID, Does: what, Instead: instead, At: w.At(pos)}, pos})
	}
}

// recordWait records a channel operation that is not part of a select statement, which has its own rule.
func (w *walk) recordWait(n ast.Node, what string) {
	for _, around := range slices.Backward(w.stack) {
		if c, ok := around.(*ast.CommClause); ok {
			if c.Comm != nil && c.Comm.Pos() <= n.Pos() && n.End() <= c.Comm.End() {
				return
			}
			break
		}
	}
	w.record(rules.Channel, n.Pos(), what, "")
}

func (w *walk) ranges(r *ast.RangeStmt) {
	t := w.TypeOf(r.X)
	if t == nil {
		return
	}
	switch t.Underlying().(type) {
	case *types.Chan:
		w.record(rules.Channel, r.Pos(), "ranges over a channel", "")
	case *types.Map:
		w.rangesOverMap(r)
	default:
		if w.isMapIterator(r.X) {
			w.rangesOverMap(r)
		}
	}
}

// literal reports whether a literal is part of the function around it: neither orchestration code nor an activity.
func (w *walk) literal(l *ast.FuncLit) bool {
	sig, ok := w.TypeOf(l).(*types.Signature)
	switch {
	case !ok || api.IsActivity(sig):
		return false
	case api.ContextParam(sig) == nil:
		return true
	}
	name := w.node.Name
	if w.node.Outer == nil {
		name = "the function in " + name
	}
	n := &node{Function: source.Function{
		Name: name, Body: l.Body, Sig: sig, Outer: &w.node.Function, Orchestration: true,
	}}
	w.nodes = append(w.nodes, n)
	(&walk{Graph: w.Graph, node: n}).over(l.Body)
	return false
}

func (w *walk) call(c *ast.CallExpr) bool {
	callee := w.Callee(c)
	if id := syntax.NameIn(c.Fun); id != nil {
		w.called[id] = c
	}
	switch {
	case syntax.IsOnce(callee):
		w.once++
	case w.IsBuiltin(c, "close"):
		w.record(rules.Channel, c.Pos(), "closes a channel", "")
	case api.Is(callee, "SideEffect") && len(c.Args) == 2:
		w.over(c.Args[0])
		return false // its function runs outside replay
	case api.Is(callee, "SetQueryHandler") && len(c.Args) == 3:
		w.over(c.Args[0])
		w.over(c.Args[1])
		return false // a handler makes no decisions
	case api.Is(callee, "WithValidator") && len(c.Args) == 1:
		return false // a validator makes no decisions
	}
	if !api.Is(callee) && callee != nil {
		w.passesContext(c, callee)
	}
	w.collectsMap(c, callee)
	return true
}

// passesContext records calls that get a context.Context, except calls of package context.
func (w *walk) passesContext(c *ast.CallExpr, callee *types.Func) {
	if !w.node.Orchestration || callee.Pkg() != nil && callee.Pkg().Path() == "context" {
		return
	}
	for _, arg := range c.Args {
		if _, isCall := ast.Unparen(arg).(*ast.CallExpr); !isCall && api.IsGoContext(w.TypeOf(arg)) {
			w.record(rules.Context, c.Pos(), "passes a context.Context to "+w.Display(callee), "")
		}
	}
}

// mention records a function or variable: library functions as effects, others as calls.
func (w *walk) mention(id *ast.Ident) {
	switch obj := w.Pass.TypesInfo.Uses[id].(type) {
	case *types.Func:
		w.mentionFunction(id, obj.Origin())
	case *types.Var:
		if v := syntax.PackageVar(obj.Origin()); v != nil {
			w.mentionVariable(id, v)
		}
	}
}

func (w *walk) mentionFunction(id *ast.Ident, f *types.Func) {
	c, verb := w.called[id], calls
	if c == nil {
		verb = uses
		if sig := f.Signature(); api.IsActivity(sig) || api.ContextParam(sig) != nil {
			return // the engine calls it
		}
	}
	if w.isOfLibrary(id, verb, f) {
		return
	}
	for _, to := range w.implementations(id, f) {
		w.node.calls = append(w.node.calls, call{verb: verb, to: to, pos: id.Pos(), sorted: c != nil && w.isSorted()})
	}
}

// isOfLibrary reports whether the effect of an object is known, and records the effect.
func (w *walk) isOfLibrary(id *ast.Ident, verb string, obj types.Object) bool {
	k, ok := library.LookUp(syntax.FullName(obj))
	if ok && k.Rule != nil {
		w.record(k.Rule, id.Pos(), verb+" "+w.Display(obj), k.Instead)
	}
	return ok
}

func (w *walk) mentionVariable(id *ast.Ident, v *types.Var) {
	if w.isOfLibrary(id, uses, v) {
		return
	}
	verb := reads
	if syntax.IsFunction(v) {
		sig, ok := v.Type().Underlying().(*types.Signature)
		if ok && (api.IsActivity(sig) || api.ContextParam(sig) != nil) {
			return
		}
		verb = calls
	}
	if w.once == 0 && !w.isTarget(id) {
		w.node.calls = append(w.node.calls, call{verb: verb, to: v, pos: id.Pos()})
	}
}

// isTarget reports whether an identifier is part of an expression that a surrounding statement changes.
func (w *walk) isTarget(id *ast.Ident) bool {
	for _, n := range w.stack {
		for _, left := range w.Targets(n) {
			if left.Pos() <= id.Pos() && id.End() <= left.End() {
				return true
			}
		}
	}
	return false
}
