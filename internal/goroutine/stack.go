// Package goroutine prepares goroutines for deep calls.
package goroutine

// kept is the size of a frame that exceeds a stack of 8 KB and fits a stack of 16 KB, the largest one that the runtime
// reuses.
const kept = 10 << 10

// ReserveStack grows the stack of the calling goroutine to 16 KB. Call it first in a goroutine.
//
// A goroutine starts with about 2 KB. Whenever a call needs more, the runtime doubles the stack, copies it and looks up
// every frame on it. For a short goroutine that encodes JSON and calls AWS, the runtime does so three times, with many
// frames on the stack. Without ReserveStack, this growth takes an eighth of the time of a fan-out. ReserveStack makes
// the runtime look up one frame, once.
//
//go:noinline
func ReserveStack() {
	if needed { // never true, but the frame has space for the array, which is not zeroed
		var room [kept]byte
		use(&room)
	}
}

// needed is always false. It is a variable, so that the compiler does not remove the branch.
var needed bool

//go:noinline
func use(room *[kept]byte) { room[0] = 1 }
