//go:build !race

package lambdahandler

// manyOr is the size of a test of scale: the full one; the race detector's build has the smaller.
func manyOr(_, many int) int { return many }
