package calls

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/perdure/perdure/analysis/internal/api"
	"github.com/perdure/perdure/analysis/internal/source"
	"github.com/perdure/perdure/analysis/internal/syntax"
)

// contextTrace traces a context to its origin, through variables, fields, parameters and functions of the package.
type contextTrace struct {
	*source.Package

	// cancellable is a parameter whose context may be cancelled. It may be nil.
	cancellable *types.Var
	// seen is the set of variables, fields and functions that the trace has visited.
	seen map[types.Object]bool
}

func newContextTrace(p *source.Package, cancellable *types.Var) *contextTrace {
	return &contextTrace{Package: p, cancellable: cancellable, seen: map[types.Object]bool{}}
}

// isSafe reports whether a context may be safe from cancellation: its origin is WithoutCancel, Compensate, or unknown.
func (t *contextTrace) isSafe(e ast.Expr) bool {
	if c, ok := ast.Unparen(e).(*ast.CallExpr); ok {
		return t.returnsSafe(c)
	}
	if f := t.field(e); f != nil {
		return t.visit(f) && t.fieldIsSafe(f)
	}
	v := t.Variable(e)
	return v != nil && t.visit(v) && t.variableIsSafe(v)
}

// visit marks an object as visited and reports whether this is the first visit.
func (t *contextTrace) visit(o types.Object) bool {
	if t.seen[o] {
		return false
	}
	t.seen[o] = true
	return true
}

// variableIsSafe reports whether an assignment or a call in the package gives a variable a safe context.
func (t *contextTrace) variableIsSafe(v *types.Var) bool {
	if slices.ContainsFunc(t.Assigned[v], t.isSafe) {
		return true
	}
	return v.Kind() == types.ParamVar && v != t.cancellable && t.isAnywhere(func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		return ok && t.passesSafe(c, v)
	})
}

// fieldIsSafe reports whether code in the package sets a field to a safe context.
func (t *contextTrace) fieldIsSafe(field *types.Var) bool {
	return t.isAnywhere(func(n ast.Node) bool { return slices.ContainsFunc(t.setOn(field, n), t.isSafe) })
}

// returnsSafe reports whether a call may return a safe context.
func (t *contextTrace) returnsSafe(c *ast.CallExpr) bool {
	callee := t.Callee(c)
	switch {
	case api.Is(callee, "WithCancel", "WithTimeout"):
		return t.isSafe(c.Args[0])
	case callee == nil || api.Is(callee, "WithoutCancel") || t.Declared[callee] == nil:
		return true
	}
	return t.visit(callee) && syntax.Contains(t.Declared[callee].Body, func(n ast.Node) bool {
		r, ok := n.(*ast.ReturnStmt)
		return ok && t.returns(callee, r)
	})
}

// returns reports whether a return statement may return a safe context.
func (t *contextTrace) returns(f *types.Func, r *ast.ReturnStmt) bool {
	if len(r.Results) > 0 {
		return slices.ContainsFunc(r.Results, func(e ast.Expr) bool {
			return api.IsContext(t.TypeOf(e)) && t.isSafe(e)
		})
	}
	for v := range f.Signature().Results().Variables() {
		if api.IsContext(v.Type()) && t.visit(v) && t.variableIsSafe(v) {
			return true
		}
	}
	return false
}

// passesSafe reports whether a call passes a safe context to a parameter of the function that it calls, or of a
// function in its arguments.
func (t *contextTrace) passesSafe(c *ast.CallExpr, parameter *types.Var) bool {
	for _, sig := range t.functions(c.Fun) {
		for i := range min(sig.Params().Len(), len(c.Args)) {
			if sig.Params().At(i) == parameter && t.isSafe(c.Args[i]) {
				return true
			}
		}
	}
	passedOn := slices.ContainsFunc(c.Args, func(e ast.Expr) bool {
		return slices.ContainsFunc(t.functions(e), func(sig *types.Signature) bool {
			return api.ContextParam(sig) == parameter
		})
	})
	return passedOn && (api.Is(t.Callee(c), "Compensate") ||
		slices.ContainsFunc(c.Args, func(e ast.Expr) bool {
			return api.IsContext(t.TypeOf(e)) && t.isSafe(e)
		}))
}

// functions returns the signatures of the functions to which an expression may refer.
func (t *contextTrace) functions(e ast.Expr) (all []*types.Signature) {
	values := []ast.Expr{e}
	if v := t.Variable(e); v != nil {
		values = t.Assigned[v]
	}
	for _, value := range values {
		if f := t.Used(value); f != nil {
			all = append(all, f.Origin().Signature())
		} else if sig, ok := t.TypeOf(value).(*types.Signature); ok && syntax.IsLiteral(value) {
			all = append(all, sig)
		}
	}
	return all
}

// isAnywhere reports whether is returns true for a part of the package's code.
func (t *contextTrace) isAnywhere(is func(ast.Node) bool) bool {
	return slices.ContainsFunc(t.Pass.Files, func(file *ast.File) bool { return syntax.Contains(file, is) })
}

// field returns the field that an expression such as s.ctx names, or nil.
func (t *contextTrace) field(e ast.Expr) *types.Var {
	sel, ok := ast.Unparen(e).(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	v, _ := t.Pass.TypesInfo.Uses[sel.Sel].(*types.Var)
	if v == nil || !v.IsField() {
		return nil
	}
	return v.Origin()
}

// setOn returns the values that an assignment or a struct literal assigns to a field.
func (t *contextTrace) setOn(field *types.Var, n ast.Node) (all []ast.Expr) {
	switch n := n.(type) {
	case *ast.AssignStmt:
		for i, left := range n.Lhs {
			if t.field(left) == field {
				all = append(all, n.Rhs[min(i, len(n.Rhs)-1)])
			}
		}
	case *ast.CompositeLit:
		s := syntax.StructOf(t.TypeOf(n))
		if s == nil {
			return nil
		}
		for i, e := range n.Elts {
			of := s.Field(i)
			if kv, named := e.(*ast.KeyValueExpr); named {
				of, e = t.Variable(kv.Key), kv.Value
			}
			if of != nil && of.Origin() == field {
				all = append(all, e)
			}
		}
	}
	return all
}
