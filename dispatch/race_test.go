//go:build race

package dispatch_test

// manyOr is how much a test of a scale does: with the race detector, which makes it ten times slower, as little as it says.
func manyOr(few int) int { return few }
