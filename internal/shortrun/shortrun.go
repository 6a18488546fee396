// Package shortrun decides which tests `go test -short` skips, and how far it reduces others.
package shortrun

import "testing"

// Skip leaves a test out of a short run, which is to be over in minutes: one of a hundred thousand activities, of
// thousands of orders, or of minutes that pass on a real clock.
func Skip(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("takes long, and -short is set: make test-all runs it")
	}
}

// Few returns short in a short run and all otherwise: how often a test does the same, such as the seeds that it tries,
// or how large something is.
func Few[T any](short, all T) T {
	if testing.Short() {
		return short
	}
	return all
}

// Step is the distance between the places that a test tries one after another, such as the calls at which it crashes: n
// in a short run, 1 otherwise.
func Step(n int64) int64 { return Few(n, 1) }
