package analysis

import (
	"go/ast"
	"go/types"
	"slices"
)

// keptFutures are the local variables of a package that hold futures, and what is done with them.
type keptFutures struct {
	*program

	// stored is where each is given futures, in order; read are those that anything reads; passed are mentions that
	// read nothing.
	stored []stored
	read   map[*types.Var]bool
	passed map[*ast.Ident]bool
}

// stored is a future that a variable is given.
type stored struct {
	in     *types.Var
	future ast.Expr
}

// unreadFutures reports futures that are kept in a variable which nothing reads.
func unreadFutures(p *program) {
	k := &keptFutures{program: p, read: map[*types.Var]bool{}, passed: map[*ast.Ident]bool{}}
	for _, file := range p.pass.Files {
		ast.Inspect(file, k.look)
	}
	told := map[*types.Var]bool{}
	for _, s := range k.stored {
		if !k.read[s.in] && !told[s.in] {
			told[s.in] = true
			callee := p.display(calleeOf(p.pass.TypesInfo, k.made(s.future)))
			p.tell(unawaited, s.future.Pos(), "", s.in.Name()+", which stores the future of "+callee+", is never read")
		}
	}
}

func (k *keptFutures) look(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.AssignStmt:
		for i, left := range n.Lhs {
			if len(n.Lhs) == len(n.Rhs) {
				k.gives(left, n.Rhs[i])
			} else {
				k.shares(k.variable(left))
			}
		}
	case *ast.RangeStmt:
		k.ranges(n)
	case *ast.CaseClause:
		v, _ := k.pass.TypesInfo.Implicits[n].(*types.Var)
		k.shares(v)
	case *ast.CallExpr:
		if isBuiltin(k.pass.TypesInfo, n, "len", "cap") {
			k.leavesUnread(n.Args[0])
		}
	case *ast.ValueSpec:
		for i, name := range n.Names {
			if len(n.Names) == len(n.Values) {
				k.gives(name, n.Values[i])
			}
		}
	case *ast.FuncType:
		k.returns(n.Results)
	case *ast.Ident:
		if v, ok := k.pass.TypesInfo.Uses[n].(*types.Var); ok && !k.passed[n] {
			k.read[v] = true
		}
	}
	return true
}

// returns notes that results with names are read.
func (k *keptFutures) returns(results *ast.FieldList) {
	if results == nil {
		return
	}
	for _, field := range results.List {
		for _, name := range field.Names {
			if v, ok := k.pass.TypesInfo.Defs[name].(*types.Var); ok {
				k.read[v] = true
			}
		}
	}
}

// ranges notes that what a range gives is also where it comes from, and that one which only counts reads nothing.
func (k *keptFutures) ranges(n *ast.RangeStmt) {
	if n.Value == nil || isBlank(n.Value) {
		k.leavesUnread(n.X)
	}
	for _, e := range []ast.Expr{n.Key, n.Value} {
		if e != nil {
			k.shares(k.variable(e))
		}
	}
}

// gives notes what a variable is given. To be assigned to, to grow and to be assigned to the blank identifier is not to
// be read.
func (k *keptFutures) gives(left, right ast.Expr) {
	if isBlank(left) {
		k.leavesUnread(right)
		return
	}
	id, _ := baseOf(left).(*ast.Ident)
	v := k.variable(id)
	if v == nil || global(v) != nil || v.IsField() || !holdsFutures(v.Type()) {
		return
	}
	_, whole := ast.Unparen(left).(*ast.Ident)
	if !whole && canBeShared(v) && (v.Kind() == types.ParamVar || v.Kind() == types.RecvVar) {
		return // its caller has what the elements are given
	}
	if whole && k.isShared(right) {
		k.shares(v)
	}
	k.passed[id] = true
	for _, f := range k.givenBy(v, right) {
		if c := k.made(f); c != nil {
			k.stored = append(k.stored, stored{v, f})
		}
	}
}

// givenBy are the values that a variable, or an element of it, is given by an expression: its elements, what it is
// grown by, or itself.
func (k *keptFutures) givenBy(v *types.Var, right ast.Expr) []ast.Expr {
	switch r := ast.Unparen(right).(type) {
	case *ast.CompositeLit:
		var all []ast.Expr
		for _, e := range r.Elts {
			if kv, ok := e.(*ast.KeyValueExpr); ok {
				e = kv.Value
			}
			all = append(all, e)
		}
		return all
	case *ast.CallExpr:
		if isBuiltin(k.pass.TypesInfo, r, "append") && k.variable(r.Args[0]) == v {
			k.leavesUnread(r.Args[0])
			return r.Args[1:]
		}
	}
	return []ast.Expr{right}
}

// shares notes that something else has the slice or map of a variable too: whatever reads that, reads what is put into
// the variable.
func (k *keptFutures) shares(v *types.Var) {
	if v != nil && canBeShared(v) {
		k.read[v] = true
	}
}

// canBeShared reports whether what is put into a variable can be read through another: arrays are copied.
func canBeShared(v *types.Var) bool {
	switch v.Type().Underlying().(type) {
	case *types.Slice, *types.Map:
		return true
	}
	return false
}

// isShared reports whether an expression is a slice or a map that something else has too.
func (k *keptFutures) isShared(e ast.Expr) bool {
	switch r := ast.Unparen(e).(type) {
	case *ast.CompositeLit:
		return false
	case *ast.CallExpr:
		switch {
		case isBuiltin(k.pass.TypesInfo, r, "make"):
			return false
		case isBuiltin(k.pass.TypesInfo, r, "append"):
			_, part := ast.Unparen(r.Args[0]).(*ast.SliceExpr)
			return part // it is written over
		case k.pass.TypesInfo.Types[r.Fun].IsType():
			return k.isShared(r.Args[0])
		}
		return true
	case *ast.Ident:
		return k.variable(r) != nil // and not nil
	default:
		return true
	}
}

// leavesUnread notes a mention that reads nothing.
func (k *keptFutures) leavesUnread(e ast.Expr) {
	if id, ok := ast.Unparen(e).(*ast.Ident); ok && k.variable(id) != nil && holdsFutures(k.variable(id).Type()) {
		k.passed[id] = true
	}
}

// made is the call that makes a future which is to be awaited; nil of anything else.
func (k *keptFutures) made(e ast.Expr) *ast.CallExpr {
	c, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok || !isFuture(k.pass.TypesInfo.TypeOf(c)) {
		return nil
	}
	if callee := calleeOf(k.pass.TypesInfo, c); callee == nil || goesOut(callee) {
		return nil
	}
	return c
}

// holdsFutures reports whether values of a type are futures, or have them as elements.
func holdsFutures(t types.Type) bool {
	switch u := t.Underlying().(type) {
	case *types.Slice:
		t = u.Elem()
	case *types.Array:
		t = u.Elem()
	case *types.Map:
		t = u.Elem()
	}
	return isFuture(t) || isNamed(t, root, "Awaitable")
}

// isBlank reports whether an expression is the blank identifier.
func isBlank(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "_"
}

// isBuiltin reports whether a call is of a function of the language with one of these names.
func isBuiltin(info *types.Info, c *ast.CallExpr, names ...string) bool {
	b, ok := info.Uses[nameIn(c.Fun)].(*types.Builtin)
	return ok && slices.Contains(names, b.Name())
}
