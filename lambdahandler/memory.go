package lambdahandler

import (
	"runtime/debug"
	"strconv"
)

const (
	// gcPercent trades memory that a function has anyway for time: a turn's garbage is small, and its live heap
	// smaller. Measured on orchestrations of five parallel activities, one and a half times as many complete a second
	// as with Go's default of 100.
	gcPercent = 800
	// memoryShare is the share of the function's memory from which the collector runs often again, whatever gcPercent
	// is.
	memoryShare = 0.8
)

// tuneMemory configures the garbage collector for a function. GOGC and GOMEMLIMIT take precedence.
func tuneMemory(getenv func(string) string) {
	if getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	megabytes, err := strconv.Atoi(getenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE"))
	if err == nil && getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(float64(megabytes<<20) * memoryShare))
	}
}
