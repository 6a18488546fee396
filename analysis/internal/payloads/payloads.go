// Package payloads finds payload types that JSON loses or cannot encode.
package payloads

import (
	"go/ast"
	"go/token"
	"go/types"
	"reflect"
	"slices"
	"strings"

	"github.com/perdure/perdure/analysis/internal/api"
	"github.com/perdure/perdure/analysis/internal/rules"
	"github.com/perdure/perdure/analysis/internal/source"
	"github.com/perdure/perdure/analysis/internal/syntax"
)

// withPayloads are the functions whose type arguments and arguments of type any are payloads.
var withPayloads = []string{
	"AddActivity", "AddOrchestration", "DefineActivity", "Operation", "WaitForExternalEvent", "ContinueAsNew",
	"SideEffect", "SetUpdateHandler", "SetQueryHandler",
	api.CallActivityByName, api.CallSubOrchestrationByName, "StartOrchestration", "WithStart",
	api.CallUpdate, api.CallEntity, api.RaiseEvent,
	"WithErrorDetails", "ErrorDetails", "Heartbeat", "HeartbeatDetails",
}

// clientsWithPayloads are the methods of the client whose arguments of type any are payloads.
var clientsWithPayloads = []string{
	"Start", "PrepareStart", "StartOrRaiseEvent", "StartOrUpdate", api.RaiseEvent, "Update", api.CallEntity, "Query",
	"CompleteActivity", "HeartbeatActivity",
}

func hasPayloads(f *types.Func) bool {
	recv := f.Signature().Recv()
	return api.Is(f, withPayloads...) ||
		recv != nil && syntax.IsNamed(recv.Type(), api.Root+"/client", "Client") &&
			slices.Contains(clientsWithPayloads, f.Name())
}

// Check reports payload types that JSON loses or cannot encode.
func Check(p *source.Package) {
	for _, file := range p.Pass.Files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				if f, ok := p.Pass.TypesInfo.Uses[n].(*types.Func); ok && hasPayloads(f.Origin()) {
					for t := range p.Pass.TypesInfo.Instances[n].TypeArgs.Types() {
						check(p, t, n.Pos())
					}
				}
			case *ast.CallExpr:
				if f := p.Callee(n); f != nil && hasPayloads(f) {
					checkArguments(p, n, f.Signature().Params())
				}
			}
			return true
		})
	}
}

// checkArguments checks arguments of parameters of type any, except interface values.
func checkArguments(p *source.Package, c *ast.CallExpr, params *types.Tuple) {
	for i := range min(len(c.Args), params.Len()) {
		t := p.TypeOf(c.Args[i])
		if empty, ok := types.Unalias(params.At(i).Type()).(*types.Interface); ok && empty.Empty() && t != nil &&
			!types.IsInterface(t) {
			check(p, t, c.Args[i].Pos())
		}
	}
}

// check reports a type that JSON loses or cannot encode.
func check(p *source.Package, t types.Type, pos token.Pos) {
	if lost := (&lossSearch{}).loses(t); lost != "" {
		p.Report(rules.Payload, pos, "", types.TypeString(t, types.RelativeTo(p.Pass.Pkg))+" has "+lost)
	}
}

// lossSearch searches a type for parts that JSON loses.
type lossSearch struct{ seen []types.Type }

// loses describes the first part that JSON loses, or returns the empty string.
func (p *lossSearch) loses(t types.Type) string {
	seen := slices.ContainsFunc(p.seen, func(s types.Type) bool { return types.Identical(s, t) })
	if seen || syntax.MarshalsItself(t) {
		return ""
	}
	p.seen = append(p.seen, t)
	if _, ok := types.Unalias(t).(*types.TypeParam); ok {
		return ""
	}
	switch u := t.Underlying().(type) {
	case *types.Map:
		if !isKey(u.Key()) {
			return "a map whose keys are neither strings nor integers"
		}
		if method := methodOfPointer(u.Elem()); method != "" {
			return "map values whose " + method + " has a pointer receiver and is not called (use pointers or a " +
				"value receiver)"
		}
		return p.loses(u.Elem())
	case *types.Basic:
		if u.Info()&types.IsComplex != 0 {
			return "a complex number"
		}
	case *types.Chan:
		return "a channel"
	case interface{ Elem() types.Type }: // a pointer, a slice, an array
		return p.loses(u.Elem())
	case *types.Signature:
		return "a function"
	case *types.Interface:
		if u.NumMethods() > 0 {
			return "the interface " + types.TypeString(t, func(*types.Package) string { return "" })
		}
	case *types.Struct:
		return p.losesField(u)
	}
	return ""
}

// isKey reports whether a map with this key type becomes a JSON object.
func isKey(t types.Type) bool {
	if _, ok := types.Unalias(t).(*types.TypeParam); ok || syntax.MarshalsItself(t) {
		return true
	}
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&(types.IsString|types.IsInteger) != 0
}

func (p *lossSearch) losesField(s *types.Struct) string {
	for i := range s.NumFields() {
		f := s.Field(i)
		if name, _, _ := strings.Cut(reflect.StructTag(s.Tag(i)).Get("json"), ","); name == "-" || f.Name() == "_" {
			continue
		}
		if !f.Exported() && !f.Embedded() {
			return "the unexported field " + f.Name()
		}
		if lost := p.loses(f.Type()); lost != "" {
			return lost + " in " + f.Name()
		}
	}
	return ""
}

// methodOfPointer returns the encoding method of t, or of a part of t, that has a pointer receiver. It returns an empty
// string if there is none. JSON only calls it for addressable values, as in internal/payloadjson.
func methodOfPointer(t types.Type) string {
	for _, name := range []string{"MarshalJSON", "MarshalText"} {
		if obj, _, indirect := types.LookupFieldOrMethod(t, false, nil, name); obj != nil {
			return ""
		} else if indirect {
			return name
		}
	}
	switch u := t.Underlying().(type) {
	case *types.Array:
		return methodOfPointer(u.Elem())
	case *types.Struct:
		for f := range u.Fields() {
			if method := methodOfPointer(f.Type()); method != "" && f.Exported() {
				return method
			}
		}
	}
	return ""
}
