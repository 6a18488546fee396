// Package errtree walks the tree of an error and the errors that it wraps or joins.
package errtree

import "slices"

// Causes returns the errors that err wraps or joins directly.
func Causes(err error) []error {
	switch e := err.(type) { //nolint:errorlint // one layer at a time
	case interface{ Unwrap() []error }:
		return slices.DeleteFunc(slices.Clone(e.Unwrap()), func(err error) bool { return err == nil })
	case interface{ Unwrap() error }:
		if cause := e.Unwrap(); cause != nil {
			return []error{cause}
		}
	}
	return nil
}

// Every reports whether err matches, or wraps only matching errors.
func Every(err error, match func(error) bool) bool {
	if match(err) {
		return true
	}
	causes := Causes(err)
	for _, cause := range causes {
		if !Every(cause, match) {
			return false
		}
	}
	return len(causes) > 0
}

// Any reports whether err, or an error that it wraps, matches.
func Any(err error, match func(error) bool) bool {
	if match(err) {
		return true
	}
	for _, cause := range Causes(err) {
		if Any(cause, match) {
			return true
		}
	}
	return false
}

// Split returns the errors in the tree that pick accepts, and the largest parts of the tree without such an error.
func Split[E error](err error, pick func(error) (E, bool)) (picked []E, rest []error) {
	if e, ok := pick(err); ok {
		return []E{e}, nil
	}
	for _, cause := range Causes(err) {
		p, r := Split(cause, pick)
		picked, rest = append(picked, p...), append(rest, r...)
	}
	if len(picked) == 0 {
		return nil, []error{err}
	}
	return picked, rest
}
