// Package goroutine readies goroutines for deep calls.
package goroutine

// kept is what makes a stack of 8 KB too small, and fits one of 16 KB, the largest that the runtime keeps for reuse.
const kept = 10 << 10

// ReserveStack gives the calling goroutine a stack of 16 KB, as its first call.
//
// A goroutine begins with 2 KB or so. Each time that a call needs more, the runtime doubles the stack, copies it, and
// looks up every frame on it. A goroutine that encodes JSON and calls AWS does that three times, in frames that are
// deep by then, and soon ends: this took an eighth of the time of a fan-out. Here one frame is looked up, once.
//
//go:noinline
func ReserveStack() {
	if needed { // never; the frame has its room all the same, without being zeroed
		var room [kept]byte
		use(&room)
	}
}

// needed is false. The compiler does not know that.
var needed bool

//go:noinline
func use(room *[kept]byte) { room[0] = 1 }
