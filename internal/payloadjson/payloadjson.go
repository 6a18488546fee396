// Package payloadjson encodes payloads as JSON.
package payloadjson

import (
	"encoding"
	"encoding/json"
	"reflect"
	"sync"
)

// Marshal encodes v like [json.Marshal]. In addition, it calls MarshalJSON and MarshalText methods with pointer
// receivers on v itself, on its fields and on the elements of its arrays. json.Marshal calls such a method only on an
// addressable value, and otherwise omits the method's output without an error. Neither function calls such a method on
// a value in a map or an interface, because the value is not addressable.
func Marshal(v any) ([]byte, error) {
	if t := reflect.TypeOf(v); t != nil && needsAddress(t) {
		p := reflect.New(t)
		p.Elem().Set(reflect.ValueOf(v))
		v = p.Interface()
	}
	return json.Marshal(v) //nolint:wrapcheck // the caller names the value
}

var (
	marshaler     = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()

	addressed sync.Map // reflect.Type to bool
)

// needsAddress reports whether the JSON of a value depends on whether the value is addressable.
func needsAddress(t reflect.Type) bool {
	if known, ok := addressed.Load(t); ok {
		return known.(bool) //nolint:forcetypeassert // only bools are stored
	}
	needs := findPointerMethod(t)
	addressed.Store(t, needs)
	return needs
}

// findPointerMethod looks for a type whose pointer encodes itself, while the type does not.
func findPointerMethod(t reflect.Type) bool {
	pointer := reflect.PointerTo(t)
	switch {
	case t.Implements(marshaler):
		return false
	case pointer.Implements(marshaler):
		return true
	case t.Implements(textMarshaler):
		return false
	case pointer.Implements(textMarshaler):
		return true
	case t.Kind() == reflect.Array:
		return needsAddress(t.Elem())
	case t.Kind() == reflect.Struct:
		for field := range t.Fields() {
			if needsAddress(field.Type) {
				return true
			}
		}
	}
	return false // the elements of slices and pointers are addressable
}
