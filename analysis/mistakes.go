package analysis

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
)

// The rules about how perdure's own functions are called.
var (
	scope = &rule{
		id: "scope",
		finds: "The context of the enclosing function in a function of `Go`, `Async` or `Compensate`, and any " +
			"context in a function of `SideEffect`. Scopes that were created for the function are allowed.",
		why:     "its calls belong to another scope and are cancelled with that scope",
		instead: "use the function's context parameter",
		misses:  "Contexts in struct fields and other variables.",
	}
	unawaited = &rule{
		id: "unawaited", warning: true,
		finds: "Futures that are not used, are assigned to `_`, or are stored in a local variable, slice, array " +
			"or map that is never read. Futures of `RaiseEvent`, `CallUpdate` and `CallEntity` are allowed, " +
			"because the engine sends their message anyway.",
		why:     "pending calls are cancelled when the orchestration ends, and their errors are lost",
		instead: "await it, or use perdure.StartOrchestration for work that outlives its caller",
		misses:  "Futures in fields; futures with other reads, such as `IsDone`.",
	}
	unidentified = &rule{
		id: "unidentified",
		finds: "`CallActivity` and `CallSubOrchestration` with a literal or an interface's method, which the " +
			"engine cannot identify.",
		why:     "the engine looks up the name of the registered function, and the turn fails without one",
		instead: "use DefineActivity, or call by name",
		misses:  "Functions that are registered under several names, or not at all.",
	}
	continuing = &rule{
		id:      "continueasnew",
		finds:   "`ContinueAsNew` whose error is dropped.",
		why:     "the instance continues as new only if the orchestration returns this error",
		instead: "return perdure.ContinueAsNew[Out](ctx, in)",
		misses:  "Stored errors that are not returned; inputs of another type.",
	}
	changing = &rule{
		id:      "change",
		finds:   "`Version` with a change name that is not a constant, or with an empty range of constant versions.",
		why:     "the version of a change is recorded under its name; without a valid version the instance is blocked",
		instead: `write perdure.Version(ctx, "change name", perdure.DefaultVersion, 1)`,
		misses: "Names in variables; one name for two changes; moved calls; old code that was removed too early. " +
			"Replay histories to find these.",
	}
	answering = &rule{
		id: "query",
		finds: "Handlers in `SetQueryHandler` and validators in `WithValidator` that schedule, wait, set a status " +
			"or a handler, or use a side effect.",
		why:     "handlers and validators must only read: the query fails, or the update is rejected",
		instead: "read variables of the orchestration; to change something, use an event or an update",
		misses:  "Calls in functions that the literal calls; cancelled futures; functions that are not literals.",
	}
	endless = &rule{
		id: "endless",
		finds: "Loops without a condition, or with a constant condition, that call perdure in each iteration and " +
			"end only with an error, in a function without `ContinueAsNew`. Loops that no error ends, and that " +
			"therefore continue after a cancellation.",
		why:     "the history grows without limit",
		instead: "continue as new from time to time: return perdure.ContinueAsNew[Out](ctx, in)",
		misses:  "Conditions that are always true; loops that end after many iterations or with one kind of error.",
	}
	replaying = &rule{
		id:      "replaying",
		finds:   "An `if` on `ctx.IsReplaying()` whose body calls perdure or returns.",
		why:     "the replay makes other decisions than the history",
		instead: "do not depend on it; ctx.Logger() is already silent during a replay",
		misses:  "Decisions on variables that store the result.",
	}
)

// inside is a part of an orchestration's body, with what is around it.
type inside struct {
	*program

	node  *node
	stack []ast.Node
}

// mistakes reports how orchestration code misuses what it calls.
func (p *program) mistakes() {
	for _, n := range p.nodes {
		if !n.orchestration {
			continue
		}
		in := &inside{program: p, node: n}
		ast.Inspect(n.body, func(part ast.Node) bool {
			if part == nil {
				in.stack = in.stack[:len(in.stack)-1]
				return true
			}
			if l, ok := part.(*ast.FuncLit); ok && in.ofItsOwn(l) {
				return false
			}
			in.look(part)
			in.stack = append(in.stack, part)
			return true
		})
	}
	(&travelling{p}).read()
	unreadFutures(p)
}

// ofItsOwn reports whether a literal is judged by itself, or not at all.
func (in *inside) ofItsOwn(l *ast.FuncLit) bool {
	sig, ok := in.pass.TypesInfo.TypeOf(l).(*types.Signature)
	return !ok || isActivity(sig) || contextParam(sig) != nil
}

func (in *inside) look(part ast.Node) {
	switch n := part.(type) {
	case *ast.ExprStmt:
		in.dropped(n.X)
	case *ast.AssignStmt:
		in.assigned(n)
	case *ast.CallExpr:
		in.called(n)
	case *ast.DeferStmt:
		(&deferring{in}).deferred(n)
	case *ast.ForStmt:
		in.loops(n)
	case *ast.IfStmt:
		in.branches(n)
	case *ast.Ident:
		in.usesContext(n)
	}
}

// dropped looks at a call whose results are not used.
func (in *inside) dropped(e ast.Expr) {
	c, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return
	}
	callee := calleeOf(in.pass.TypesInfo, c)
	switch {
	case callee == nil || goesOut(callee):
	case isFuture(in.pass.TypesInfo.TypeOf(c)):
		in.tell(unawaited, c.Pos(), "", in.node.name+" drops the future of "+in.display(callee))
	case isOurs(callee, "ContinueAsNew"):
		in.tell(continuing, c.Pos(), "", in.node.name+" drops the error of perdure.ContinueAsNew")
	}
}

// assigned looks at what is assigned to the blank identifier.
func (in *inside) assigned(a *ast.AssignStmt) {
	if isBlank(a.Lhs[len(a.Lhs)-1]) && len(a.Rhs) == 1 {
		in.dropped(a.Rhs[0])
	}
}

func (in *inside) called(c *ast.CallExpr) {
	callee := calleeOf(in.pass.TypesInfo, c)
	switch {
	case isOurs(callee, "CallActivity", "CallSubOrchestration") && len(c.Args) > 1:
		if what := in.cannotBeIdentified(c.Args[1]); what != "" {
			in.tell(unidentified, c.Args[1].Pos(), "", in.node.name+" calls "+what)
		}
	case isOurs(callee, "Compensate") && len(c.Args) == 3:
		(&deferring{in}).compensates(c)
	case isOurs(callee, "Version") && len(c.Args) == 4:
		in.versions(c)
	case isOurs(callee, "SideEffect") && len(c.Args) == 2:
		if l, ok := ast.Unparen(c.Args[1]).(*ast.FuncLit); ok {
			in.usesAnyContext(l)
		}
	case isOurs(callee, "SetQueryHandler"):
		in.mayOnlyRead(c, "the query handler")
	case isOurs(callee, "WithValidator"):
		in.mayOnlyRead(c, "the update validator")
	}
}

// mayOnlyRead looks at the last argument of a call, a function that may only read.
func (in *inside) mayOnlyRead(c *ast.CallExpr, what string) {
	if l, ok := ast.Unparen(c.Args[len(c.Args)-1]).(*ast.FuncLit); ok {
		in.decidesIn(l, what)
	}
}

// decidesIn reports what code that may only read asks its orchestration for.
func (in *inside) decidesIn(reader *ast.FuncLit, what string) {
	ast.Inspect(reader.Body, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		callee := calleeOf(in.pass.TypesInfo, c)
		gives := slices.ContainsFunc(c.Args, func(e ast.Expr) bool { return isContext(in.pass.TypesInfo.TypeOf(e)) })
		if ours := callee != nil && callee.Pkg() != nil && callee.Pkg().Path() == root; ours &&
			(gives || isOurs(callee, "OrchestrationContext.SetCustomStatus")) {
			in.tell(answering, c.Pos(), "", what+" in "+in.node.name+" calls "+in.display(callee))
		}
		return true
	})
}

// versions looks at a call of Version.
func (in *inside) versions(c *ast.CallExpr) {
	if _, named := ast.Unparen(c.Args[1]).(*ast.Ident); !named && in.constant(c.Args[1]) == nil {
		in.tell(changing, c.Args[1].Pos(), "", in.node.name+" calls perdure.Version with a change that is not a "+
			"constant")
	}
	least, most := in.constant(c.Args[2]), in.constant(c.Args[3])
	if least != nil && most != nil && constant.Compare(least, token.GTR, most) {
		in.tell(changing, c.Args[2].Pos(), "", in.node.name+" calls perdure.Version with the empty range "+
			least.String()+" to "+most.String())
	}
}

// constant is the value of a constant; nil for other expressions.
func (in *inside) constant(e ast.Expr) constant.Value { return in.pass.TypesInfo.Types[e].Value }

// cannotBeIdentified says what an activity or orchestration is that the engine cannot find; it is empty for others.
func (in *inside) cannotBeIdentified(e ast.Expr) string {
	if v := in.variable(e); v != nil && global(v) == nil {
		all := in.program.assigned[v]
		if len(all) > 0 && !slices.ContainsFunc(all, func(e ast.Expr) bool { return !isLiteral(e) }) {
			return "a function literal, " + v.Name()
		}
	}
	if isLiteral(e) {
		return "a function literal"
	}
	if f, ok := in.pass.TypesInfo.Uses[nameIn(e)].(*types.Func); ok {
		if recv := f.Signature().Recv(); recv != nil && types.IsInterface(recv.Type()) {
			return in.display(f) + ", a method of an interface"
		}
	}
	return ""
}

func isLiteral(e ast.Expr) bool {
	_, ok := ast.Unparen(e).(*ast.FuncLit)
	return ok
}

// comesOf reports whether an expression is a call of one of perdure's functions, or a variable that may hold what one
// returned.
func (in *inside) comesOf(e ast.Expr, names ...string) bool {
	if c, ok := ast.Unparen(e).(*ast.CallExpr); ok {
		return isOurs(calleeOf(in.pass.TypesInfo, c), names...)
	}
	v := in.variable(e)
	return v != nil && slices.ContainsFunc(in.program.assigned[v], func(e ast.Expr) bool {
		c, ok := ast.Unparen(e).(*ast.CallExpr)
		return ok && isOurs(calleeOf(in.pass.TypesInfo, c), names...)
	})
}

// usesContext reports the context of a function around one that has its own.
func (in *inside) usesContext(id *ast.Ident) {
	v, ok := in.pass.TypesInfo.Uses[id].(*types.Var)
	if !ok || !isContext(v.Type()) || in.node.outer == nil || in.node.outer.sig == nil {
		return
	}
	for outer := in.node.outer; outer != nil && outer.sig != nil; outer = outer.outer {
		if contextParam(outer.sig) == v && !in.comesOf(id, "WithCancel", "WithTimeout", "WithoutCancel") {
			in.tell(scope, id.Pos(), "", in.node.name+" uses "+v.Name()+", the context of "+outer.name)
		}
	}
}

// usesAnyContext reports contexts in a function that runs outside of replay.
func (in *inside) usesAnyContext(l *ast.FuncLit) {
	ast.Inspect(l.Body, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && isContext(in.pass.TypesInfo.TypeOf(id)) {
			in.tell(scope, id.Pos(), "read the values before the call", "the function of perdure.SideEffect uses "+
				id.Name)
		}
		return true
	})
}

// branches looks at decisions by whether the code is replayed.
func (in *inside) branches(n *ast.IfStmt) {
	asks := isWithin(n.Cond, func(part ast.Node) bool {
		c, ok := part.(*ast.CallExpr)
		return ok && isOurs(calleeOf(in.pass.TypesInfo, c), "OrchestrationContext.IsReplaying")
	})
	if asks && (in.decides(n.Body) || n.Else != nil && in.decides(n.Else)) {
		in.tell(replaying, n.Pos(), "", in.node.name+" depends on ctx.IsReplaying")
	}
}

// decides reports whether code asks for something, or returns.
func (in *inside) decides(body ast.Node) bool {
	return isWithin(body, func(n ast.Node) bool {
		_, returns := n.(*ast.ReturnStmt)
		c, ok := n.(*ast.CallExpr)
		return returns || ok && in.asks(c)
	})
}
