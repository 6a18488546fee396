package replay

import (
	"iter"
	"runtime"
	"slices"
	"sync"
)

// coroutine is one thread of an orchestration's code. It runs on a goroutine of its own, but only while resume waits for
// it. It is never collected while parked: each needs stop.
type coroutine struct {
	next   func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
	number int32 // in the order of their starts
	queued bool
	over   bool
	awaits []*Task
	single [1]*Task // what awaits is made of when it is one
}

// spawn makes a coroutine; run resumes it when it is due.
func (x *execution) spawn(fn func()) {
	c := &coroutine{number: x.spawned}
	x.spawned++
	c.next, c.stop = iter.Pull(func(yield func(struct{}) bool) {
		c.yield = yield
		x.label()
		defer func() { c.over = true }()
		fn()
	})
	if len(x.coroutines) == cap(x.coroutines) { // those that are over need no stop: code that starts them for ever keeps but a few
		x.coroutines = slices.DeleteFunc(x.coroutines, func(c *coroutine) bool { return c.over })
	}
	x.coroutines = append(x.coroutines, c)
	x.wake(c)
}

func (x *execution) wake(c *coroutine) {
	if !c.queued {
		c.queued = true
		x.ready = append(x.ready, c)
	}
}

// resume runs a coroutine until it parks or ends. When the code ends by runtime.Goexit, so does the caller's goroutine,
// which is why this is deferred.
func (x *execution) resume(c *coroutine) {
	c.queued = false
	x.current = c
	defer func() { x.current = nil }()
	c.next()
}

// park suspends the running coroutine until it is woken. It does not return when the execution is unwound instead:
// Goexit runs the code's deferred calls and cannot be recovered from, as a panic could.
func (x *execution) park() {
	if !x.current.yield(struct{}{}) {
		runtime.Goexit()
	}
}

// fail voids the execution. It does not return: the coroutine stays parked until it is unwound.
func (x *execution) fail(err error) {
	if x.void == nil {
		x.void = err
	}
	x.parkForGood()
}

func (x *execution) parkForGood() {
	for {
		x.park()
	}
}

// enter is the gate of every call that decides or waits.
func (x *execution) enter() {
	mode := x.mode.Load()
	// Replay cannot have foreign calls, since the turn that made the history had none, and must be fast.
	if mode == resting || mode != reliving && onForeignGoroutine() {
		x.expel()
	}
	if mode == unwinding {
		runtime.Goexit() // again, in each deferred call that gets here
	}
	if x.current == nil {
		x.expel()
	}
	if mode == abandoned || x.foreign.Load() != nil {
		x.parkForGood()
	}
	if x.aside {
		panic("replay: the function of a side effect used its orchestration's context, which no replay would repeat")
	}
}

// expel ends the goroutine that has no business here, and voids the execution. A panic would end the process. Where no turn is under way,
// the last one may be committed and no other may follow: all that can be done is to say so.
func (x *execution) expel() {
	defer runtime.Goexit()
	e := &ForeignGoroutineError{InstanceID: x.options.InstanceID, Stack: stack()}
	if first := x.foreign.CompareAndSwap(nil, e); !first {
		return
	}
	if mode := x.mode.Load(); (mode == resting || mode == unwinding) && x.options.Logger != nil {
		late := *e // e may be in a turn's hands by now
		late.Late = true
		x.options.Logger.Error("an orchestration's context was used on a goroutine that is not the orchestration's, after its turn was over: what it asked for is lost",
			"instance", x.options.InstanceID, "execution", x.options.ExecutionID, "error", &late)
	}
}

// await parks the running coroutine until one of the tasks is done, and returns the index of the first that is; -1 when the scope is
// cancelled, whatever the tasks are.
func (x *execution) await(s *scope, tasks []*Task) int {
	if s.cancelled != nil {
		return -1
	}
	i := firstDone(tasks)
	if i >= 0 {
		return i
	}
	c := x.current
	c.awaits = tasks
	s.enlist(c)
	for _, t := range tasks {
		t.addWaiter(c)
	}
	for i < 0 && s.cancelled == nil {
		x.park()
		i = firstDone(tasks)
	}
	// Else a future that is raced again and again would gather a waiter each time.
	for _, t := range tasks {
		if !t.done {
			t.waiters = slices.DeleteFunc(t.waiters, func(w *coroutine) bool { return w == c })
		}
	}
	c.awaits = nil
	s.dismiss(c)
	if s.cancelled != nil {
		return -1
	}
	return i
}

func firstDone(tasks []*Task) int {
	return slices.IndexFunc(tasks, (*Task).IsDone)
}

// unwind ends every coroutine, one after another, running the code's deferred calls.
func (x *execution) unwind() {
	x.mode.Store(unwinding)
	for _, c := range x.coroutines {
		if c.over {
			continue
		}
		if r := stopped(c); r != nil && x.options.Logger != nil {
			x.options.Logger.Error("a deferred call of an orchestration panicked while its instance was dropped from memory",
				"instance", x.options.InstanceID, "execution", x.options.ExecutionID, "panic", r)
		}
	}
}

// stopped stops one coroutine on a goroutine made for it, since Goexit there ends the caller of stop as well.
func stopped(c *coroutine) (panicked any) {
	done := make(chan any, 1)
	go func() {
		defer func() { done <- recover() }()
		c.stop()
	}()
	return <-done
}

// onForeignGoroutine reports whether the calling goroutine is no coroutine: the frame at the bottom of its stack tells.
// A coroutine of the user's own making, an iter.Pull in the body, passes.
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

// frames are kept off the coroutines' stacks, which live as long as their instances.
var frames = sync.Pool{New: func() any { return new([256]uintptr) }}

// bottom is the outermost return address but the runtime's own goexit; 0 when the stack is too deep to tell.
func bottom() uintptr {
	pcs, _ := frames.Get().(*[256]uintptr)
	defer frames.Put(pcs)
	n := runtime.Callers(1, pcs[:])
	if n < 2 || n == len(pcs) {
		return 0
	}
	return pcs[n-2]
}
