// Package shortrun marks the tests that `go test -short` leaves out.
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

// Few is how many times a test does the same, such as the seeds of random orders that it tries: short in a short run, all
// otherwise.
func Few(short, all int) int {
	if testing.Short() {
		return short
	}
	return all
}

// Step is the distance between the places that a test tries one after another, such as the calls at which it crashes: n
// in a short run, 1 otherwise.
func Step(n int64) int64 {
	if testing.Short() {
		return n
	}
	return 1
}
