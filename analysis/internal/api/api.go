// Package api recognizes the functions and types of package perdure.
package api

import (
	"go/types"
	"slices"

	"github.com/perdure/perdure/analysis/internal/syntax"
)

// Root is the import path of package perdure.
const Root = "github.com/perdure/perdure"

// IsContext reports whether a type is perdure.OrchestrationContext or a pointer to it.
func IsContext(t types.Type) bool { return t != nil && syntax.IsNamed(t, Root, "OrchestrationContext") }

// IsGoContext reports whether a type is context.Context.
func IsGoContext(t types.Type) bool { return t != nil && syntax.IsNamed(t, "context", "Context") }

// IsFuture reports whether a type is a perdure.Future or a pointer to one.
func IsFuture(t types.Type) bool { return t != nil && syntax.IsNamed(t, Root, "Future") }

// throughContext lists the functions that do nothing after the context in their first argument is cancelled.
var throughContext = []struct {
	does  string
	names []string
}{
	{"waits", []string{
		"Future.Await", "Sleep", "Select", "WhenAny", "WhenAll", "AwaitAll", "FirstSuccess", "Map",
		"AwaitUpdateHandlers", "WaitForCondition",
	}},
	{"raises an event", []string{RaiseEvent}},
	{"sends an update", []string{CallUpdate, CallEntity}},
	{"calls an activity", []string{"CallActivity", CallActivityByName, "ActivityRef.Call"}},
	{"calls a sub-orchestration", []string{"CallSubOrchestration", CallSubOrchestrationByName}},
}

// DoesThroughContext describes a function that does nothing after the context in its first argument is cancelled. It
// returns the empty string for other functions.
func DoesThroughContext(f *types.Func) string {
	for _, group := range throughContext {
		if Is(f, group.names...) {
			return group.does
		}
	}
	return ""
}

// Functions that several rules name.
const (
	CallActivityByName         = "CallActivityByName"
	CallEntity                 = "CallEntity"
	RaiseEvent                 = "RaiseEvent"
	CallSubOrchestrationByName = "CallSubOrchestrationByName"
	CallUpdate                 = "CallUpdate"
)

// SendsMessage reports whether the engine sends the message of a call even if its future is dropped.
func SendsMessage(f *types.Func) bool { return Is(f, RaiseEvent, CallUpdate, CallEntity) }

// ContextParam returns the parameter that is an orchestration's context, or nil.
func ContextParam(sig *types.Signature) *types.Var {
	for v := range sig.Params().Variables() {
		if IsContext(v.Type()) {
			return v
		}
	}
	return nil
}

// IsOrchestrationCode reports whether a function runs as orchestration code: it takes an orchestration's context, or
// is a method of a struct that has one.
func IsOrchestrationCode(sig *types.Signature) bool {
	return ContextParam(sig) != nil || sig.Recv() != nil && holdsContext(sig.Recv().Type(), 0)
}

// mostEmbedded limits the depth of embedded structs that holdsContext searches.
const mostEmbedded = 4

// holdsContext reports whether a struct or an embedded struct has a field with an orchestration's context.
func holdsContext(t types.Type, depth int) bool {
	s := syntax.StructOf(t)
	if s == nil || depth > mostEmbedded {
		return false
	}
	for f := range s.Fields() {
		if IsContext(f.Type()) || f.Embedded() && holdsContext(f.Type(), depth+1) {
			return true
		}
	}
	return false
}

// IsActivity reports whether a function has the signature of an activity.
func IsActivity(sig *types.Signature) bool {
	return sig.Params().Len() > 0 && IsGoContext(sig.Params().At(0).Type())
}

// Is reports whether a function belongs to package perdure and has one of these names. Methods are named Type.Method.
func Is(f *types.Func, names ...string) bool {
	if f == nil || f.Pkg() == nil || f.Pkg().Path() != Root {
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
