// Package syntax inspects expressions and types.
package syntax

import (
	"go/ast"
	"go/types"
)

// IsNamed reports whether a type is the named type of a package, or a pointer to it.
func IsNamed(t types.Type, pkg, name string) bool {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Name() == name && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == pkg
}

// CalleeOf returns the function or method that a call names, or nil for calls of values, conversions and builtins.
func CalleeOf(info *types.Info, call *ast.CallExpr) *types.Func {
	f, _ := info.Uses[NameIn(call.Fun)].(*types.Func)
	if f == nil {
		return nil
	}
	return f.Origin()
}

// NameIn returns the last identifier of an expression such as f, pkg.F, x.m[T] or (f), or nil.
func NameIn(e ast.Expr) *ast.Ident {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return e
	case *ast.SelectorExpr:
		return e.Sel
	case *ast.IndexExpr:
		return NameIn(e.X)
	case *ast.IndexListExpr:
		return NameIn(e.X)
	}
	return nil
}

// FullName returns the name of an object with its package path.
func FullName(obj types.Object) string {
	switch obj := obj.(type) {
	case *types.Func:
		return obj.Origin().FullName()
	case *types.Var:
		if obj.Pkg() != nil {
			return obj.Pkg().Path() + "." + obj.Name()
		}
	}
	return obj.Name()
}

// PackageVar returns obj if obj is a package-level variable, or nil.
func PackageVar(obj types.Object) *types.Var {
	v, ok := obj.(*types.Var)
	if !ok || v.IsField() || v.Pkg() == nil || v.Parent() != v.Pkg().Scope() {
		return nil
	}
	return v
}

// IsOnce reports whether a function runs its argument once in a process.
func IsOnce(f *types.Func) bool {
	if f == nil {
		return false
	}
	switch f.FullName() {
	case "(*sync.Once).Do", "sync.OnceFunc", "sync.OnceValue", "sync.OnceValues":
		return true
	}
	return false
}

// IsBlank reports whether an expression is the blank identifier.
func IsBlank(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "_"
}

// IsLiteral reports whether an expression is a function literal.
func IsLiteral(e ast.Expr) bool {
	_, ok := ast.Unparen(e).(*ast.FuncLit)
	return ok
}

// Mentions reports whether an expression contains an expression whose printed form is text.
func Mentions(e ast.Expr, text string) bool {
	return Contains(e, func(n ast.Node) bool {
		part, ok := n.(ast.Expr)
		return ok && types.ExprString(part) == text
	})
}

// BaseOf returns the expression to which index, selector and star expressions are applied.
func BaseOf(e ast.Expr) ast.Expr {
	for {
		switch x := ast.Unparen(e).(type) {
		case *ast.IndexExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		default:
			return x
		}
	}
}

// Contains reports whether is returns true for code or a part of it.
func Contains(code ast.Node, is func(ast.Node) bool) bool {
	found := false
	ast.Inspect(code, func(n ast.Node) bool {
		found = found || n != nil && is(n)
		return !found
	})
	return found
}

// StructOf returns the struct that a type is or points to, or nil.
func StructOf(t types.Type) *types.Struct {
	if p, ok := types.Unalias(t).Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	s, _ := t.Underlying().(*types.Struct)
	return s
}

// IsFunction reports whether the type of an object is a function.
func IsFunction(obj types.Object) bool {
	_, ok := obj.Type().Underlying().(*types.Signature)
	return ok
}

// MarshalsItself reports whether a type has its own JSON or text encoding.
func MarshalsItself(t types.Type) bool {
	for _, name := range []string{"MarshalJSON", "MarshalText", "UnmarshalJSON", "UnmarshalText"} {
		if obj, _, _ := types.LookupFieldOrMethod(t, true, nil, name); obj != nil {
			return true
		}
	}
	return false
}
