// Package unwrap finds optional interfaces of wrapped values, like errors.As for errors.
package unwrap

// As returns v as a T. If v does not implement T, As calls its method Unwrap() V, if there is one, and tries the result
// in the same way. ok is false if no value implements T.
func As[T, V any](v V) (found T, ok bool) {
	for {
		if found, ok = any(v).(T); ok {
			return found, true
		}
		wrapper, wraps := any(v).(interface{ Unwrap() V })
		if !wraps {
			return found, false
		}
		v = wrapper.Unwrap()
	}
}
