package analysis

import (
	"go/ast"
	"go/types"
	"reflect"
	"slices"
	"strings"
)

var payloads = &rule{
	id:      "payload",
	finds:   "Inputs, results and data of events with what JSON loses or cannot hold: unexported fields, channels, functions, interfaces with methods. Types that marshal themselves are left alone.",
	why:     "payloads travel as JSON",
	instead: `export the field, leave it out with json:"-", or write MarshalJSON and UnmarshalJSON`,
	misses:  "Values behind `any`, types that marshal themselves and lose something, and calls by name.",
}

// withPayloads are the functions whose type arguments travel.
var withPayloads = []string{"AddActivity", "AddOrchestration", "DefineActivity", "WaitForExternalEvent", "ContinueAsNew"}

// readPayloads reports types of payloads that do not come out as they went in.
func (p *program) readPayloads() {
	for _, file := range p.pass.Files {
		ast.Inspect(file, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			f, ok := p.pass.TypesInfo.Uses[id].(*types.Func)
			if !ok || !isOurs(f.Origin(), withPayloads...) {
				return true
			}
			for t := range p.pass.TypesInfo.Instances[id].TypeArgs.Types() {
				if lost := (&payload{}).loses(t); lost != "" {
					p.tell(payloads, id.Pos(), "", types.TypeString(t, types.RelativeTo(p.pass.Pkg))+" has "+lost)
				}
			}
			return true
		})
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
	case *types.Pointer:
		return p.loses(u.Elem())
	case *types.Slice:
		return p.loses(u.Elem())
	case *types.Array:
		return p.loses(u.Elem())
	case *types.Map:
		return p.loses(u.Elem())
	case *types.Chan:
		return "a channel"
	case *types.Signature:
		return "a function"
	case *types.Interface:
		if u.NumMethods() > 0 {
			return "an interface, " + types.TypeString(t, func(*types.Package) string { return "" })
		}
	case *types.Struct:
		return p.losesField(u)
	}
	return ""
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

// marshalsItself reports whether a type has a method by which it becomes JSON or text.
func marshalsItself(t types.Type) bool {
	for _, name := range []string{"MarshalJSON", "MarshalText", "UnmarshalJSON", "UnmarshalText"} {
		if obj, _, _ := types.LookupFieldOrMethod(t, true, nil, name); obj != nil {
			return true
		}
	}
	return false
}
