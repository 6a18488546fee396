package names

import (
	"go/types"

	"github.com/perdure/perdure/analysis/internal/syntax"
)

// shapeOf describes the JSON type of a Go type. It is empty if the JSON type is unknown.
func shapeOf(t types.Type) string {
	if t == nil || syntax.MarshalsItself(t) || syntax.IsNamed(t, "encoding/json", "Number") {
		return ""
	}
	if p, ok := t.Underlying().(*types.Pointer); ok {
		if _, again := p.Elem().Underlying().(*types.Pointer); again {
			return "" // the type may be recursive
		}
		return shapeOf(p.Elem())
	}
	if _, ok := types.Unalias(t).(*types.TypeParam); ok {
		return ""
	}
	switch u := t.Underlying().(type) {
	case *types.Slice:
		if b, ok := u.Elem().Underlying().(*types.Basic); ok && b.Kind() == types.Byte {
			return "" // a string in base64, or a list where the elements marshal themselves
		}
		return "a list"
	case *types.Array:
		return "a list"
	case *types.Map, *types.Struct:
		return "an object"
	case *types.Basic:
		return shapeOfBasic(u)
	}
	return ""
}

func shapeOfBasic(b *types.Basic) string {
	switch info := b.Info(); {
	case info&types.IsString != 0:
		return "a string"
	case info&types.IsBoolean != 0:
		return "a boolean"
	case info&(types.IsInteger|types.IsFloat) != 0:
		return "a number"
	}
	return ""
}
