package coroutine

import (
	"iter"
	"runtime"
	"sync"
)

// Coroutine is one thread of the code of an orchestration. It has its own goroutine, which runs only while the
// scheduler resumes it. The runtime never collects a parked coroutine, so each one must be stopped.
type Coroutine[W any] struct {
	// Wait is the state of the coroutine's wait. It belongs to the caller of Scheduler.Park.
	Wait W

	next   func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
	number int32 // in the order of starts
	queued bool  // the coroutine is in the ready queue
	ended  bool
}

// Ended reports whether the code of the coroutine has ended.
func (c *Coroutine[W]) Ended() bool { return c.ended }

// Number returns the position of the coroutine in the order of starts.
func (c *Coroutine[W]) Number() int32 { return c.number }

// stopped stops a coroutine and returns the panic value of one of its deferred calls. It uses its own goroutine,
// because Goexit in the coroutine also ends the caller of stop.
func (c *Coroutine[W]) stopped() (panicked any) {
	done := make(chan any, 1)
	go func() {
		defer func() { done <- recover() }()
		c.stop()
	}()
	return <-done
}

// isForeign reports whether a goroutine is not a coroutine. outermost is the result of bottom on it. It does not detect
// a coroutine that user code creates with iter.Pull on a coroutine.
func isForeign(outermost uintptr) bool { return outermost != 0 && outermost != coroutineBottom() }

// coroutineBottom returns the outermost return address of every coroutine, which is in the runtime.
var coroutineBottom = sync.OnceValue(func() (pc uintptr) {
	next, stop := iter.Pull(func(func(struct{}) bool) { pc = bottom() })
	defer stop()
	next()
	return pc
})

// frames holds buffers, which would otherwise make the stacks of coroutines larger for as long as their instances live.
var frames = sync.Pool{New: func() any { return new([256]uintptr) }}

// bottom returns the outermost return address apart from goexit, or 0 if the stack is too deep. Most of the time of
// Enter is its walk of the stack, so Enter calls it directly.
func bottom() uintptr {
	pcs, _ := frames.Get().(*[256]uintptr)
	defer frames.Put(pcs)
	n := runtime.Callers(1, pcs[:])
	if n < 2 || n == len(pcs) {
		return 0
	}
	return pcs[n-2]
}
