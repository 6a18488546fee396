//go:build race

package dispatch_test

// manyOr returns the size of scale tests: few with the race detector, which makes them ten times slower.
func manyOr(few int) int { return few }
