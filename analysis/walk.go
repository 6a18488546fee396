package analysis

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// walk goes through the body of a node, and notes what it does and calls.
type walk struct {
	*program

	node  *node
	stack []ast.Node
	once  int // how many calls are around it that run their arguments once
}

func (w *walk) over(body ast.Node) {
	ast.Inspect(body, func(n ast.Node) bool {
		if n == nil {
			if c, ok := w.stack[len(w.stack)-1].(*ast.CallExpr); ok && isOnce(calleeOf(w.pass.TypesInfo, c)) {
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

// visit looks at one part of the body, and reports whether to look inside.
func (w *walk) visit(n ast.Node) bool {
	if w.once == 0 {
		for _, v := range w.written(n) {
			w.does(globals, n.Pos(), "writes "+w.display(v), "")
		}
	}
	switch n := n.(type) {
	case *ast.FuncLit:
		return w.literal(n)
	case *ast.CallExpr:
		return w.call(n)
	case *ast.GoStmt:
		w.does(goroutine, n.Pos(), "starts a goroutine", "")
		for _, arg := range n.Call.Args {
			w.over(arg)
		}
		return false
	case *ast.SendStmt:
		w.wait(channel, n, "sends to a channel")
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			w.wait(channel, n, "receives from a channel")
		}
	case *ast.SelectStmt:
		w.does(selecting, n.Pos(), "selects", "")
	case *ast.RangeStmt:
		w.ranges(n)
	case *ast.Ident:
		w.mention(n)
	}
	return true
}

// does notes an effect of the node's own.
func (w *walk) does(r *rule, pos token.Pos, what, instead string) {
	if !w.ignores.cover(r, pos) {
		w.node.own = append(w.node.own, found{effect{Rule: r.id, Does: what, Instead: instead, At: w.at(pos)}, pos})
	}
}

// wait notes a wait for a channel, where no select tells of it already.
func (w *walk) wait(r *rule, n ast.Node, what string) {
	for _, around := range slices.Backward(w.stack) {
		if c, ok := around.(*ast.CommClause); ok {
			if c.Comm != nil && c.Comm.Pos() <= n.Pos() && n.End() <= c.Comm.End() {
				return
			}
			break
		}
	}
	w.does(r, n.Pos(), what, "")
}

func (w *walk) ranges(r *ast.RangeStmt) {
	t := w.pass.TypesInfo.TypeOf(r.X)
	if t == nil {
		return
	}
	switch t.Underlying().(type) {
	case *types.Chan:
		w.does(channel, r.Pos(), "ranges over a channel", "")
	case *types.Map:
		w.rangesOverMap(r)
	default:
		if w.isMapIterator(r.X) {
			w.rangesOverMap(r)
		}
	}
}

// literal is part of the function around it, unless it is orchestration code of its own or an activity.
func (w *walk) literal(l *ast.FuncLit) bool {
	sig, ok := w.pass.TypesInfo.TypeOf(l).(*types.Signature)
	switch {
	case !ok || isActivity(sig):
		return false
	case contextParam(sig) == nil:
		return true
	}
	name := w.node.name
	if w.node.outer == nil {
		name = "the function in " + name
	}
	n := &node{name: name, body: l.Body, sig: sig, outer: w.node, orchestration: true}
	w.nodes = append(w.nodes, n)
	(&walk{program: w.program, node: n}).over(l.Body)
	return false
}

func (w *walk) call(c *ast.CallExpr) bool {
	callee := calleeOf(w.pass.TypesInfo, c)
	if id := nameIn(c.Fun); id != nil {
		w.called[id] = c
	}
	switch {
	case isOnce(callee):
		w.once++
	case isBuiltin(w.pass.TypesInfo, c, "close"):
		w.does(channel, c.Pos(), "closes a channel", "")
	case isOurs(callee, "SideEffect") && len(c.Args) == 2:
		w.over(c.Args[0])
		return false // its function runs outside of replay
	case isOurs(callee, "SetQueryHandler") && len(c.Args) == 3:
		w.over(c.Args[0])
		w.over(c.Args[1])
		return false // so does a handler, which decides nothing
	case isOurs(callee, "WithValidator") && len(c.Args) == 1:
		return false // and a validator
	}
	if !isOurs(callee) && callee != nil {
		w.passesContext(c, callee)
	}
	w.collectsMap(c, callee)
	return true
}

// passesContext notes a context.Context that goes to something else than what makes contexts.
func (w *walk) passesContext(c *ast.CallExpr, callee *types.Func) {
	if !w.node.orchestration || callee.Pkg() != nil && callee.Pkg().Path() == "context" {
		return
	}
	for _, arg := range c.Args {
		if _, isCall := ast.Unparen(arg).(*ast.CallExpr); !isCall && isGoContext(w.pass.TypesInfo.TypeOf(arg)) {
			w.does(contexts, c.Pos(), "passes a context.Context to "+w.display(callee), "")
		}
	}
}

// mention notes functions and variables of which an identifier is the name: known ones as effects, others as calls.
func (w *walk) mention(id *ast.Ident) {
	switch obj := w.pass.TypesInfo.Uses[id].(type) {
	case *types.Func:
		w.mentionFunction(id, obj.Origin())
	case *types.Var:
		if v := global(obj.Origin()); v != nil {
			w.mentionVariable(id, v)
		}
	}
}

func (w *walk) mentionFunction(id *ast.Ident, f *types.Func) {
	c, verb := w.called[id], calls
	if c == nil {
		verb = uses
		if sig := f.Signature(); isActivity(sig) || contextParam(sig) != nil {
			return // it is registered, or named to be called by the engine
		}
	}
	if k, ok := lookUp(nameOf(f)); ok {
		if k.rule != nil {
			w.does(k.rule, id.Pos(), verb+" "+w.display(f), k.instead)
		}
		return
	}
	for _, to := range w.implementations(id, f) {
		w.node.calls = append(w.node.calls, call{verb: verb, to: to, pos: id.Pos(), sorted: c != nil && w.isSorted()})
	}
}

func (w *walk) mentionVariable(id *ast.Ident, v *types.Var) {
	if k, ok := lookUp(nameOf(v)); ok {
		if k.rule != nil {
			w.does(k.rule, id.Pos(), uses+" "+w.display(v), k.instead)
		}
		return
	}
	verb := reads
	if isFunction(v) {
		if sig, ok := v.Type().Underlying().(*types.Signature); ok && (isActivity(sig) || contextParam(sig) != nil) {
			return
		}
		verb = calls
	}
	if w.once == 0 && !w.isTarget(id) {
		w.node.calls = append(w.node.calls, call{verb: verb, to: v, pos: id.Pos()})
	}
}

// isTarget reports whether an identifier stands on the left of an assignment, where it is written.
func (w *walk) isTarget(id *ast.Ident) bool {
	if len(w.stack) == 0 {
		return false
	}
	for _, n := range w.stack {
		for _, left := range w.targets(n) {
			if left.Pos() <= id.Pos() && id.End() <= left.End() {
				return true
			}
		}
	}
	return false
}
