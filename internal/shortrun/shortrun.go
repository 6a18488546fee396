// Package shortrun skips tests in `go test -short`, or reduces their size.
package shortrun

import "testing"

// Skip skips a long test in a short run, which must end within minutes. Examples are tests of a hundred thousand
// activities or thousands of orders, and tests that wait minutes of real time.
func Skip(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("takes long, and -short is set: make test-all runs it")
	}
}

// Few returns short in a short run, and all otherwise. Use it for the number of repetitions of a test, such as its
// seeds, or for a size.
func Few[T any](short, all T) T {
	if testing.Short() {
		return short
	}
	return all
}

// Step returns n in a short run, and 1 otherwise. Use it as the distance between positions that a test tries, such as
// the calls at which it crashes.
func Step(n int64) int64 { return Few(n, 1) }
