// Package offered finds what something offers that may stand before another.
package offered

// By returns what h offers beside its type: h itself, or what it stands before, which its method Unwrap() H returns, and so on.
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
