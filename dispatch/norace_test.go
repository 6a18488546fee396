//go:build !race

package dispatch_test

// manyOr is how much a test of a scale does: thirty thousand, but with the race detector.
func manyOr(int) int { return 30_000 }
