//go:build race

package lambdahandler

// manyOr is the size of a test of scale: a small one with the race detector, which makes it ten times slower.
func manyOr(few, _ int) int { return few }
