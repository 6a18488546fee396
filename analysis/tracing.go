package analysis

import (
	"go/ast"
	"go/types"
	"slices"
)

// tracing follows a context back to where it comes from, through variables, fields, parameters and functions of the
// package.
type tracing struct {
	*program

	// given is a parameter of which it is known that it is given a context that may be cancelled; it may be nil.
	given *types.Var
	// seen are the variables, fields and functions that are followed already.
	seen map[types.Object]bool
}

func newTracing(p *program, given *types.Var) *tracing {
	return &tracing{program: p, given: given, seen: map[types.Object]bool{}}
}

// isSafe reports whether a context may be one that nothing cancels: one of WithoutCancel or a scope of that, one that
// Compensate gives, or one of which it is not known what made it.
func (t *tracing) isSafe(e ast.Expr) bool {
	if c, ok := ast.Unparen(e).(*ast.CallExpr); ok {
		return t.returnsSafe(c)
	}
	if f := t.field(e); f != nil {
		return t.begins(f) && t.fieldIsSafe(f)
	}
	v := t.variable(e)
	return v != nil && t.begins(v) && t.variableIsSafe(v)
}

// begins notes that something is followed, and reports whether it is for the first time.
func (t *tracing) begins(o types.Object) bool {
	if t.seen[o] {
		return false
	}
	t.seen[o] = true
	return true
}

// variableIsSafe reports whether a variable is assigned such a context, or a parameter is passed one by a call anywhere
// in the package.
func (t *tracing) variableIsSafe(v *types.Var) bool {
	if slices.ContainsFunc(t.assigned[v], t.isSafe) {
		return true
	}
	return v.Kind() == types.ParamVar && v != t.given && t.isAnywhere(func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		return ok && t.passesSafe(c, v)
	})
}

// fieldIsSafe reports whether a field is given such a context anywhere in the package.
func (t *tracing) fieldIsSafe(field *types.Var) bool {
	return t.isAnywhere(func(n ast.Node) bool { return slices.ContainsFunc(t.givenTo(field, n), t.isSafe) })
}

// returnsSafe reports whether a call returns such a context.
func (t *tracing) returnsSafe(c *ast.CallExpr) bool {
	callee := calleeOf(t.pass.TypesInfo, c)
	switch {
	case isOurs(callee, "WithCancel", "WithTimeout"):
		return t.isSafe(c.Args[0])
	case callee == nil || isOurs(callee, "WithoutCancel") || t.declared[callee] == nil:
		return true
	}
	return t.begins(callee) && isWithin(t.declared[callee].Body, func(n ast.Node) bool {
		r, ok := n.(*ast.ReturnStmt)
		return ok && t.returns(callee, r)
	})
}

// returns reports whether a function returns such a context by a statement.
func (t *tracing) returns(f *types.Func, r *ast.ReturnStmt) bool {
	if len(r.Results) > 0 {
		return slices.ContainsFunc(r.Results, func(e ast.Expr) bool {
			return isContext(t.pass.TypesInfo.TypeOf(e)) && t.isSafe(e)
		})
	}
	for v := range f.Signature().Results().Variables() {
		if isContext(v.Type()) && t.begins(v) && t.variableIsSafe(v) {
			return true
		}
	}
	return false
}

// passesSafe reports whether a call gives such a context to a parameter: to one of the function that it calls, or of
// one that is called in its turn.
func (t *tracing) passesSafe(c *ast.CallExpr, parameter *types.Var) bool {
	for _, sig := range t.functions(c.Fun) {
		for i := range min(sig.Params().Len(), len(c.Args)) {
			if sig.Params().At(i) == parameter && t.isSafe(c.Args[i]) {
				return true
			}
		}
	}
	passedOn := slices.ContainsFunc(c.Args, func(e ast.Expr) bool {
		return slices.ContainsFunc(t.functions(e), func(sig *types.Signature) bool {
			return contextParam(sig) == parameter
		})
	})
	return passedOn && (isOurs(calleeOf(t.pass.TypesInfo, c), "Compensate") ||
		slices.ContainsFunc(c.Args, func(e ast.Expr) bool {
			return isContext(t.pass.TypesInfo.TypeOf(e)) && t.isSafe(e)
		}))
}

// functions are what an expression may be: a literal, a function that is declared, or what a variable is assigned of
// these.
func (t *tracing) functions(e ast.Expr) (all []*types.Signature) {
	values := []ast.Expr{e}
	if v := t.variable(e); v != nil {
		values = t.assigned[v]
	}
	for _, value := range values {
		if f, ok := t.pass.TypesInfo.Uses[nameIn(value)].(*types.Func); ok {
			all = append(all, f.Origin().Signature())
		} else if sig, ok := t.pass.TypesInfo.TypeOf(value).(*types.Signature); ok && isLiteral(value) {
			all = append(all, sig)
		}
	}
	return all
}

// isAnywhere reports whether something is so of a part of the package's code.
func (t *tracing) isAnywhere(is func(ast.Node) bool) bool {
	return slices.ContainsFunc(t.pass.Files, func(file *ast.File) bool { return isWithin(file, is) })
}

// isWithin reports whether something is so of a piece of code, or of a part of it.
func isWithin(code ast.Node, is func(ast.Node) bool) bool {
	found := false
	ast.Inspect(code, func(n ast.Node) bool {
		found = found || n != nil && is(n)
		return !found
	})
	return found
}

// field is the field that an expression such as s.ctx names.
func (t *tracing) field(e ast.Expr) *types.Var {
	sel, ok := ast.Unparen(e).(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	v, _ := t.pass.TypesInfo.Uses[sel.Sel].(*types.Var)
	if v == nil || !v.IsField() {
		return nil
	}
	return v.Origin()
}

// givenTo is what a statement, or a value of a struct, gives to a field.
func (t *tracing) givenTo(field *types.Var, n ast.Node) (all []ast.Expr) {
	switch n := n.(type) {
	case *ast.AssignStmt:
		for i, left := range n.Lhs {
			if t.field(left) == field {
				all = append(all, n.Rhs[min(i, len(n.Rhs)-1)])
			}
		}
	case *ast.CompositeLit:
		s := structOf(t.pass.TypesInfo.TypeOf(n))
		if s == nil {
			return nil
		}
		for i, e := range n.Elts {
			of := s.Field(i)
			if kv, named := e.(*ast.KeyValueExpr); named {
				of, e = t.variable(kv.Key), kv.Value
			}
			if of != nil && of.Origin() == field {
				all = append(all, e)
			}
		}
	}
	return all
}

// structOf is the struct that a type is, or points to; nil of others.
func structOf(t types.Type) *types.Struct {
	if p, ok := types.Unalias(t).Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	s, _ := t.Underlying().(*types.Struct)
	return s
}
