//go:build race

package lambdahandler

// manyOr returns the smaller of two sizes of a test, because the race detector makes the test ten times slower.
func manyOr(few, _ int) int { return few }
