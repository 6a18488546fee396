// Package goroutine prepares goroutines for deep calls.
package goroutine

// kept is the size of a frame that does not fit a stack of 8 KB and fits a stack of 16 KB. The runtime reuses stacks of
// at most 16 KB.
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
	if needed { // never true; the frame has the space for the array without zeroing it
		var room [kept]byte
		use(&room)
	}
}

// needed is false. The compiler does not know that.
var needed bool

//go:noinline
func use(room *[kept]byte) { room[0] = 1 }
