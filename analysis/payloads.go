package analysis

import (
	"go/ast"
	"go/token"
	"go/types"
	"reflect"
	"slices"
	"strings"
)

var payloads = &rule{
	id: "payload",
	finds: "Types that JSON loses or cannot encode: unexported fields, channels, functions, complex numbers, " +
		"interfaces with methods, maps with struct keys, and map values whose `MarshalJSON` or " +
		"`MarshalText` has a pointer receiver. The rule checks all payloads, error details and results of " +
		"`SideEffect`, even in clients.",
	why:     "payloads are encoded as JSON",
	instead: `export the field, exclude it with json:"-", or implement MarshalJSON and UnmarshalJSON`,
	misses:  "Values behind `any` and other interfaces; types with their own marshaling; custom statuses.",
}

// withPayloads are the functions whose type arguments travel, and so does what they are given as any.
var withPayloads = []string{
	"AddActivity", "AddOrchestration", "DefineActivity", "Operation", "WaitForExternalEvent", "ContinueAsNew",
	"SideEffect", "SetUpdateHandler", "SetQueryHandler",
	callActivityByName, callSubOrchestrationByName, "StartOrchestration", "WithStart", callUpdate, callEntity,
	raiseEvent,
	"WithErrorDetails", "ErrorDetails", "Heartbeat", "HeartbeatDetails",
}

// clientsWithPayloads are the methods of the client that send what they are given as any.
var clientsWithPayloads = []string{
	"Start", "PrepareStart", "StartOrRaiseEvent", "StartOrUpdate", raiseEvent, "Update", callEntity, "Query",
	"CompleteActivity", "HeartbeatActivity",
}

func hasPayloads(f *types.Func) bool {
	recv := f.Signature().Recv()
	return isOurs(f, withPayloads...) ||
		recv != nil && isNamed(recv.Type(), root+"/client", "Client") && slices.Contains(clientsWithPayloads, f.Name())
}

// travelling is what of a package travels.
type travelling struct{ *program }

// read reports types of payloads that do not come out as they went in.
func (p *travelling) read() {
	for _, file := range p.pass.Files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				if f, ok := p.pass.TypesInfo.Uses[n].(*types.Func); ok && hasPayloads(f.Origin()) {
					for t := range p.pass.TypesInfo.Instances[n].TypeArgs.Types() {
						p.travels(t, n.Pos())
					}
				}
			case *ast.CallExpr:
				if f := calleeOf(p.pass.TypesInfo, n); f != nil && hasPayloads(f) {
					p.readGiven(n, f.Signature().Params())
				}
			}
			return true
		})
	}
}

// readGiven looks at what a function is given as any. Of an interface's value the type is not known.
func (p *travelling) readGiven(c *ast.CallExpr, params *types.Tuple) {
	for i := range min(len(c.Args), params.Len()) {
		t := p.pass.TypesInfo.TypeOf(c.Args[i])
		if empty, ok := types.Unalias(params.At(i).Type()).(*types.Interface); ok && empty.Empty() && t != nil &&
			!types.IsInterface(t) {
			p.travels(t, c.Args[i].Pos())
		}
	}
}

// travels reports a type that JSON does not carry.
func (p *travelling) travels(t types.Type, pos token.Pos) {
	if lost := (&payload{}).loses(t); lost != "" {
		p.tell(payloads, pos, "", types.TypeString(t, types.RelativeTo(p.pass.Pkg))+" has "+lost)
	}
}

// payload looks into a type.
type payload struct{ seen []types.Type }

// loses says what JSON does not carry; it is empty when it carries all.
func (p *payload) loses(t types.Type) string {
	if slices.ContainsFunc(p.seen, func(s types.Type) bool { return types.Identical(s, t) }) || marshalsItself(t) {
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

// isKey reports whether JSON can have a type as the keys of an object.
func isKey(t types.Type) bool {
	if _, ok := types.Unalias(t).(*types.TypeParam); ok || marshalsItself(t) {
		return true
	}
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&(types.IsString|types.IsInteger) != 0
}

func (p *payload) losesField(s *types.Struct) string {
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

// methodOfPointer returns the method by which a pointer to t, or to a part of t, becomes JSON, while the value does
// not; it is empty if there is none. Only an addressable value is encoded by it, as in internal/payloadjson.
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

// marshalsItself reports whether a type has a method by which it becomes JSON or text.
func marshalsItself(t types.Type) bool {
	for _, name := range []string{"MarshalJSON", "MarshalText", "UnmarshalJSON", "UnmarshalText"} {
		if obj, _, _ := types.LookupFieldOrMethod(t, true, nil, name); obj != nil {
			return true
		}
	}
	return false
}
