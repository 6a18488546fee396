//go:build !race

package dispatch_test

// manyOr returns the size of scale tests: thirty thousand without the race detector.
func manyOr(int) int { return 30_000 }
