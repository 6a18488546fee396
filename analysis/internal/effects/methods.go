package effects

import (
	"go/ast"
	"go/types"

	"github.com/perdure/perdure/analysis/internal/api"
)

// implementations returns the functions that a call of f may run: f itself, or the methods of the known types of an
// interface value.
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

// concrete returns the types of the interface value whose method is called, or nil if they are unknown.
func (w *walk) concrete(method *ast.Ident, iface types.Type) []types.Type {
	if len(w.stack) > 0 {
		if sel, ok := w.stack[len(w.stack)-1].(*ast.SelectorExpr); ok && sel.Sel == method {
			if ts := w.typesOf(w.Variable(sel.X)); len(ts) > 0 {
				return ts
			}
			if t := w.TypeOf(sel.X); t != nil {
				iface = t
			}
		}
	}
	return w.onlyImplementation(iface)
}

// typesOf returns the types of the values that are assigned to a variable, or nil if one of them is unknown.
func (g *Graph) typesOf(v *types.Var) []types.Type {
	var all []types.Type
	for _, e := range g.Assigned[v] {
		t := g.TypeOf(e)
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

// onlyImplementation returns the type that implements an unexported interface of the package, if there is only one.
func (g *Graph) onlyImplementation(iface types.Type) []types.Type {
	n, ok := types.Unalias(iface).(*types.Named)
	if !ok || n.Obj().Exported() || n.Obj().Pkg() != g.Pass.Pkg || n.TypeParams().Len() > 0 {
		return nil
	}
	i, ok := n.Underlying().(*types.Interface)
	if !ok || i.NumMethods() == 0 || g.contextImplements(i) {
		return nil
	}
	if all := g.implementing(i); len(all) == 1 {
		return all
	}
	return nil
}

// implementing returns the types of the package that implement an interface.
func (g *Graph) implementing(i *types.Interface) (all []types.Type) {
	scope := g.Pass.Pkg.Scope()
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

// contextImplements reports whether perdure.OrchestrationContext implements an interface.
func (g *Graph) contextImplements(i *types.Interface) bool {
	for _, imported := range g.Pass.Pkg.Imports() {
		if imported.Path() == api.Root {
			obj := imported.Scope().Lookup("OrchestrationContext")
			return obj != nil && types.Implements(types.NewPointer(obj.Type()), i)
		}
	}
	return false
}

func methodOf(t types.Type, f *types.Func) types.Object {
	obj, _, _ := types.LookupFieldOrMethod(t, true, f.Pkg(), f.Name())
	if m, ok := obj.(*types.Func); ok {
		return m.Origin()
	}
	return nil
}
