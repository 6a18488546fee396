// Package offered finds interfaces that a wrapped value implements.
package offered

// By returns h as a T. If h does not implement T, By calls its method Unwrap() H, if there is one, and tries the result
// in the same way. ok is false if no value implements T.
func By[T, H any](h H) (offer T, ok bool) {
	for {
		if offer, ok = any(h).(T); ok {
			return offer, true
		}
		before, wraps := any(h).(interface{ Unwrap() H })
		if !wraps {
			return offer, false
		}
		h = before.Unwrap()
	}
}
