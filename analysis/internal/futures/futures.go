// Package futures finds futures that are stored but never read.
package futures

import (
	"go/ast"
	"go/types"

	"github.com/perdure/perdure/analysis/internal/api"
	"github.com/perdure/perdure/analysis/internal/rules"
	"github.com/perdure/perdure/analysis/internal/source"
	"github.com/perdure/perdure/analysis/internal/syntax"
)

// checker collects the local variables of a package that store futures, and their reads.
type checker struct {
	*source.Package

	stored []stored
	read   map[*types.Var]bool
	// unread are identifiers that name a variable without reading it.
	unread map[*ast.Ident]bool
}

// stored is a call whose future a variable stores.
type stored struct {
	in   *types.Var
	call *ast.CallExpr
}

// Check reports futures in local variables that no code reads.
func Check(p *source.Package) {
	ck := &checker{Package: p, read: map[*types.Var]bool{}, unread: map[*ast.Ident]bool{}}
	for _, file := range p.Pass.Files {
		ast.Inspect(file, ck.visit)
	}
	for _, s := range ck.stored {
		if !ck.read[s.in] {
			ck.read[s.in] = true // one finding for each variable
			p.Report(rules.Unawaited, s.call.Pos(), "",
				s.in.Name()+", which stores the future of "+p.Display(p.Callee(s.call))+", is never read")
		}
	}
}

func (ck *checker) visit(n ast.Node) bool {
	source.EachAssignment(n, func(left, right ast.Expr, shared bool) {
		if !shared {
			ck.assign(left, right)
		} else if _, declared := n.(*ast.ValueSpec); !declared {
			ck.markShared(ck.Variable(left))
		}
	})
	switch n := n.(type) {
	case *ast.RangeStmt:
		ck.visitRange(n)
	case *ast.CaseClause:
		v, _ := ck.Pass.TypesInfo.Implicits[n].(*types.Var)
		ck.markShared(v)
	case *ast.CallExpr:
		if ck.IsBuiltin(n, "len", "cap") {
			ck.markUnread(n.Args[0])
		}
	case *ast.FuncType:
		ck.markResults(n.Results)
	case *ast.Ident:
		if v, ok := ck.Pass.TypesInfo.Uses[n].(*types.Var); ok && !ck.unread[n] {
			ck.read[v] = true
		}
	}
	return true
}

// markResults marks named results as read.
func (ck *checker) markResults(results *ast.FieldList) {
	if results == nil {
		return
	}
	for _, field := range results.List {
		for _, name := range field.Names {
			if v, ok := ck.Pass.TypesInfo.Defs[name].(*types.Var); ok {
				ck.read[v] = true
			}
		}
	}
}

// visitRange visits a range statement. A range without a value does not read futures.
func (ck *checker) visitRange(n *ast.RangeStmt) {
	if n.Value == nil || syntax.IsBlank(n.Value) {
		ck.markUnread(n.X)
	}
	for _, e := range []ast.Expr{n.Key, n.Value} {
		if e != nil {
			ck.markShared(ck.Variable(e))
		}
	}
}

// assign records an assignment. Assignments to a variable, appends to it, and assignments of it to the blank identifier
// are not reads.
func (ck *checker) assign(left, right ast.Expr) {
	if syntax.IsBlank(left) {
		ck.markUnread(right)
		return
	}
	id, _ := syntax.BaseOf(left).(*ast.Ident)
	v := ck.Variable(id)
	if v == nil || syntax.PackageVar(v) != nil || v.IsField() || !holdsFutures(v.Type()) {
		return
	}
	_, whole := ast.Unparen(left).(*ast.Ident)
	if !whole && canBeShared(v) && (v.Kind() == types.ParamVar || v.Kind() == types.RecvVar) {
		return // the caller can read the elements
	}
	if whole && ck.isShared(right) {
		ck.markShared(v)
	}
	ck.unread[id] = true
	for _, e := range ck.assignedValues(v, right) {
		if c := ck.pendingCall(e); c != nil {
			ck.stored = append(ck.stored, stored{v, c})
		}
	}
}

// assignedValues returns the values that an assignment stores in a variable or its elements.
func (ck *checker) assignedValues(v *types.Var, right ast.Expr) []ast.Expr {
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
		if ck.IsBuiltin(r, "append") && ck.Variable(r.Args[0]) == v {
			ck.markUnread(r.Args[0])
			return r.Args[1:]
		}
	}
	return []ast.Expr{right}
}

// markShared marks the slice or map of a variable as read, because another variable shares it.
func (ck *checker) markShared(v *types.Var) {
	if v != nil && canBeShared(v) {
		ck.read[v] = true
	}
}

// canBeShared reports whether another variable can share the elements of a variable.
func canBeShared(v *types.Var) bool {
	switch v.Type().Underlying().(type) {
	case *types.Slice, *types.Map:
		return true
	}
	return false
}

// isShared reports whether another variable may share the slice or map of an expression.
func (ck *checker) isShared(e ast.Expr) bool {
	switch r := ast.Unparen(e).(type) {
	case *ast.CompositeLit:
		return false
	case *ast.CallExpr:
		switch {
		case ck.IsBuiltin(r, "make"):
			return false
		case ck.IsBuiltin(r, "append"):
			_, part := ast.Unparen(r.Args[0]).(*ast.SliceExpr)
			return part // append overwrites the slice
		case ck.Pass.TypesInfo.Types[r.Fun].IsType():
			return ck.isShared(r.Args[0])
		}
		return true
	case *ast.Ident:
		return ck.Variable(r) != nil // r may be nil
	default:
		return true
	}
}

// markUnread marks an expression that names a variable without reading it.
func (ck *checker) markUnread(e ast.Expr) {
	if id, ok := ast.Unparen(e).(*ast.Ident); ok && ck.Variable(id) != nil && holdsFutures(ck.Variable(id).Type()) {
		ck.unread[id] = true
	}
}

// pendingCall returns the call if its future must be awaited, or nil.
func (ck *checker) pendingCall(e ast.Expr) *ast.CallExpr {
	c, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok || !api.IsFuture(ck.TypeOf(c)) {
		return nil
	}
	if callee := ck.Callee(c); callee == nil || api.SendsMessage(callee) {
		return nil
	}
	return c
}

// holdsFutures reports whether values of a type are futures or have futures as elements.
func holdsFutures(t types.Type) bool {
	switch u := t.Underlying().(type) {
	case *types.Slice:
		t = u.Elem()
	case *types.Array:
		t = u.Elem()
	case *types.Map:
		t = u.Elem()
	}
	return api.IsFuture(t) || syntax.IsNamed(t, api.Root, "Awaitable")
}
