//go:build !race

package lambdahandler

// manyOr is how much a test of a scale does: all of it, but with the race detector.
func manyOr(_, many int) int { return many }
