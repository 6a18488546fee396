// Package payloadjson encodes the values of programs as JSON.
package payloadjson

import (
	"encoding"
	"encoding/json"
	"reflect"
	"sync"
)

// Marshal is json.Marshal, and also calls a MarshalJSON or MarshalText method that has a pointer receiver: of the value
// itself, of its fields and of the elements of its arrays. json.Marshal calls such a method only if the value is
// addressable, and else loses what only the method writes, without an error. A value in a map or an interface is not
// addressable either way.
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
