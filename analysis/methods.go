package analysis

import (
	"go/ast"
	"go/types"
)

// implementations are the functions that a call of f runs: f itself, or for a method of an interface those of the types
// that the value can be known to have.
func (w *walk) implementations(id *ast.Ident, f *types.Func) []types.Object {
	recv := f.Signature().Recv()
	if recv == nil || !types.IsInterface(recv.Type()) {
		return []types.Object{f}
	}
	var all []types.Object
	for _, t := range w.concrete(id, recv.Type()) {
		if m := methodOf(t, f); m != nil {
			all = append(all, m)
		}
	}
	return all
}

// concrete are the types that the value has whose method is called; none where that cannot be known.
func (w *walk) concrete(method *ast.Ident, iface types.Type) []types.Type {
	if len(w.stack) > 0 {
		if sel, ok := w.stack[len(w.stack)-1].(*ast.SelectorExpr); ok && sel.Sel == method {
			if ts := w.typesOf(w.variable(sel.X)); len(ts) > 0 {
				return ts
			}
			if t := w.pass.TypesInfo.TypeOf(sel.X); t != nil {
				iface = t
			}
		}
	}
	return w.onlyImplementation(iface)
}

// typesOf are the types of all that is assigned to a variable; none where one of them is an interface.
func (w *walk) typesOf(v *types.Var) []types.Type {
	var all []types.Type
	for _, e := range w.assigned[v] {
		t := w.pass.TypesInfo.TypeOf(e)
		if t == nil || types.IsInterface(t) {
			return nil
		}
		if _, several := t.(*types.Tuple); several {
			return nil
		}
		all = append(all, t)
	}
	return all
}

// onlyImplementation is the one type of the package that has the methods of an unexported interface of the package.
func (w *walk) onlyImplementation(iface types.Type) []types.Type {
	n, ok := types.Unalias(iface).(*types.Named)
	if !ok || n.Obj().Exported() || n.Obj().Pkg() != w.pass.Pkg || n.TypeParams().Len() > 0 {
		return nil
	}
	i, ok := n.Underlying().(*types.Interface)
	if !ok || i.NumMethods() == 0 || w.contextImplements(i) {
		return nil
	}
	if all := w.implementing(i); len(all) == 1 {
		return all
	}
	return nil
}

// implementing are the types of the package that have the methods of an interface.
func (w *walk) implementing(i *types.Interface) (all []types.Type) {
	scope := w.pass.Pkg.Scope()
	for _, name := range scope.Names() {
		t, ok := scope.Lookup(name).(*types.TypeName)
		if !ok || types.IsInterface(t.Type()) || t.IsAlias() {
			continue
		}
		if named, ok := t.Type().(*types.Named); ok && named.TypeParams().Len() > 0 {
			continue
		}
		if p := types.NewPointer(t.Type()); types.Implements(p, i) {
			all = append(all, p)
		}
	}
	return all
}

// contextImplements reports whether an orchestration's context could be the value of an interface.
func (w *walk) contextImplements(i *types.Interface) bool {
	for _, imported := range w.pass.Pkg.Imports() {
		if imported.Path() == root {
			obj := imported.Scope().Lookup("OrchestrationContext")
			return obj != nil && types.Implements(types.NewPointer(obj.Type()), i)
		}
	}
	return false
}

func methodOf(t types.Type, f *types.Func) types.Object {
	obj, _, _ := types.LookupFieldOrMethod(t, true, f.Pkg(), f.Name())
	m, ok := obj.(*types.Func)
	if !ok {
		return nil
	}
	return m.Origin()
}
