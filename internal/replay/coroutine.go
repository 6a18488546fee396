package replay

import (
	"iter"
	"runtime"
	"sync"
)

// coroutine is one thread of an orchestration's code. It runs on a goroutine of its own, but only while resume waits for it. The runtime
// never collects one that is parked: each needs stop.
type coroutine struct {
	next     func() (struct{}, bool)
	stop     func()
	yield    func(struct{}) bool
	number   int32 // in the order of starts
	queued   bool  // it is in the ready queue
	over     bool
	awaits   []*Task  // what it is parked for
	together []*Task  // what it needs all of, where it is parked for one after the other
	told     *[]*Task // where it wants to read what of that has settled; nil where it looks itself
	single   [1]*Task // the backing array of awaits when that is one task
}

// tell notes that a task has settled which the coroutine is parked for.
func (c *coroutine) tell(t *Task) {
	if c.told != nil {
		*c.told = append(*c.told, t)
	}
}

// stopped stops one coroutine, and returns what a deferred call of it panicked with. It does so on a goroutine of its own, since Goexit in
// the coroutine ends the caller of stop as well.
func stopped(c *coroutine) (panicked any) {
	done := make(chan any, 1)
	go func() {
		defer func() { done <- recover() }()
		c.stop()
	}()
	return <-done
}

// onForeignGoroutine reports whether the calling goroutine is no coroutine, by the frame at the bottom of its stack. A coroutine that user
// code makes itself, with iter.Pull in the body, passes.
func onForeignGoroutine() bool {
	b := bottom()
	return b != 0 && b != coroutineBottom()
}

// coroutineBottom is the return address at the bottom of every coroutine, inside the runtime.
var coroutineBottom = sync.OnceValue(func() (pc uintptr) {
	next, stop := iter.Pull(func(func(struct{}) bool) { pc = bottom() })
	defer stop()
	next()
	return pc
})

// frames holds buffers. They are kept off the coroutines' stacks, which live as long as their instances.
var frames = sync.Pool{New: func() any { return new([256]uintptr) }}

// bottom returns the outermost return address but the runtime's own goexit; 0 when the stack is too deep.
func bottom() uintptr {
	pcs, _ := frames.Get().(*[256]uintptr)
	defer frames.Put(pcs)
	n := runtime.Callers(1, pcs[:])
	if n < 2 || n == len(pcs) {
		return 0
	}
	return pcs[n-2]
}
