package analysis

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// root is the package that orchestrations import.
const root = "github.com/perdure/perdure"

// isEngine reports whether a package is part of the engine: what it does is known, and its code is not looked at.
func isEngine(path string) bool {
	return path == root || path == root+"/history" || strings.HasPrefix(path, root+"/internal/")
}

// isStandard reports whether a package is of the standard library.
func isStandard(path string, hasModule bool) bool {
	first, _, _ := strings.Cut(path, "/")
	return !hasModule && !strings.Contains(first, ".") && first != "command-line-arguments" || first == "vendor"
}

// isNamed reports whether a type is a named one of a package, or a pointer to it.
func isNamed(t types.Type, pkg, name string) bool {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Name() == name && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == pkg
}

// isContext reports whether a type is that of an orchestration's context.
func isContext(t types.Type) bool { return t != nil && isNamed(t, root, "OrchestrationContext") }

// isGoContext reports whether a type is context.Context.
func isGoContext(t types.Type) bool { return t != nil && isNamed(t, "context", "Context") }

// isFuture reports whether a type is *perdure.Future.
func isFuture(t types.Type) bool { return t != nil && isNamed(t, root, "Future") }

// waits are the functions that wait through a context. What raises and sends are asked for goes out, and need not be
// awaited, but through a context that is cancelled; nor is an activity or a child scheduled through that.
var (
	waits = []string{
		"Future.Await", "Sleep", "Select", "WhenAny", "WhenAll", "AwaitAll", "FirstSuccess", "Map",
		"AwaitUpdateHandlers", "WaitForCondition",
	}
	raises = []string{raiseEvent}
	sends  = []string{callUpdate, callEntity}

	activities = []string{"CallActivity", callActivityByName, "ActivityRef.Call"}
	children   = []string{"CallSubOrchestration", callSubOrchestrationByName}
)

// Functions of perdure that several rules name.
const (
	callActivityByName         = "CallActivityByName"
	callEntity                 = "CallEntity"
	raiseEvent                 = "RaiseEvent"
	callSubOrchestrationByName = "CallSubOrchestrationByName"
	callUpdate                 = "CallUpdate"
)

// goesOut reports whether a call sends something by itself, whatever becomes of its future.
func goesOut(f *types.Func) bool { return isOurs(f, raises...) || isOurs(f, sends...) }

// contextParam is the parameter of a function that is an orchestration's context; nil when there is none.
func contextParam(sig *types.Signature) *types.Var {
	for v := range sig.Params().Variables() {
		if isContext(v.Type()) {
			return v
		}
	}
	return nil
}

// isOrchestrationCode reports whether a function runs as orchestration code: it takes the context, or is a method of
// what holds one.
func isOrchestrationCode(sig *types.Signature) bool {
	if contextParam(sig) != nil {
		return true
	}
	if sig.Recv() == nil {
		return false
	}
	return holdsContext(sig.Recv().Type(), 0)
}

// mostEmbedded is how deep structs that hold a context are looked for in others.
const mostEmbedded = 4

// holdsContext reports whether a struct, or one that is embedded in it, has an orchestration's context.
func holdsContext(t types.Type, depth int) bool {
	s := structOf(t)
	if s == nil || depth > mostEmbedded {
		return false
	}
	for f := range s.Fields() {
		if isContext(f.Type()) || f.Embedded() && holdsContext(f.Type(), depth+1) {
			return true
		}
	}
	return false
}

// isActivity reports whether a function has the form of an activity: where it is only named, it is not called.
func isActivity(sig *types.Signature) bool {
	return sig.Params().Len() > 0 && isGoContext(sig.Params().At(0).Type())
}

// calleeOf is the function or method that a call names; nil for calls of values, conversions and builtins.
func calleeOf(info *types.Info, call *ast.CallExpr) *types.Func {
	f, _ := info.Uses[nameIn(call.Fun)].(*types.Func)
	if f == nil {
		return nil
	}
	return f.Origin()
}

// nameIn is the last name of an expression such as f, pkg.F, x.m[T] and (f); nil when it has none.
func nameIn(e ast.Expr) *ast.Ident {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return e
	case *ast.SelectorExpr:
		return e.Sel
	case *ast.IndexExpr:
		return nameIn(e.X)
	case *ast.IndexListExpr:
		return nameIn(e.X)
	}
	return nil
}

// isOurs reports whether a function is one of the root package with one of these names; methods are named Type.Method.
func isOurs(f *types.Func, names ...string) bool {
	if f == nil || f.Pkg() == nil || f.Pkg().Path() != root {
		return false
	}
	name := f.Name()
	if recv := f.Signature().Recv(); recv != nil {
		t := recv.Type()
		if p, ok := t.(*types.Pointer); ok {
			t = p.Elem()
		}
		if n, ok := types.Unalias(t).(*types.Named); ok {
			name = n.Obj().Name() + "." + name
		}
	}
	return slices.Contains(names, name)
}
