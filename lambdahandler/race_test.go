//go:build race

package lambdahandler

// manyOr is how much a test of a scale does: few with the race detector, which makes it ten times slower.
func manyOr(few, _ int) int { return few }
