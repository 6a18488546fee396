package replay

import (
	"iter"
	"runtime"
	"slices"

	"github.com/perdure/perdure/internal/faults"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/replay/stack"
)

// scheduler runs the coroutines of an execution one at a time, in the order in which they became ready. It belongs to the goroutine that runs
// the turn or unwinds the execution; other goroutines may use its gate alone.
type scheduler struct {
	options    *Options
	gate       gate
	mark       string       // of its goroutines: a query may replay an execution beside its turns
	coroutines []*coroutine // in the order of their starts
	ready      []*coroutine // in the order in which they were woken
	resumed    int          // how many of ready have been resumed
	current    *coroutine   // nil between two coroutines
	spawned    int32        // how many coroutines were started
	aside      bool         // a side effect is being produced: the code may ask for nothing meanwhile
	goroutines int          // of the process, before the turn
	void       error        // why the execution may never run again
}

// countGoroutines notes how many goroutines the process has before a turn.
func (s *scheduler) countGoroutines() { s.goroutines = runtime.NumGoroutine() }

// spawn makes a coroutine, which is resumed after those that are ready by now.
func (s *scheduler) spawn(fn func()) {
	c := &coroutine{number: s.spawned}
	s.spawned++

	c.next, c.stop = iter.Pull(func(yield func(struct{}) bool) {
		c.yield = yield
		s.label()
		defer func() { c.over = true }()
		fn()
	})

	// Coroutines that are over need no stop. Leaving them out keeps the list short for code that starts them without end.
	s.coroutines = append(roomy(s.coroutines, func(c *coroutine) bool { return c.over }), c)
	s.wake(c)
}

// wake puts a coroutine in the ready queue, unless it is there.
func (s *scheduler) wake(c *coroutine) {
	if !c.queued {
		c.queued = true
		s.ready = append(s.ready, c)
	}
}

// run resumes coroutines, in the order in which they became ready, until none can go on or the execution has ended.
func (s *scheduler) run(l *life) {
	for s.resumed < len(s.ready) && s.void == nil && !l.hasEnded() {
		c := s.ready[s.resumed]
		s.resumed++
		if !c.over {
			s.resume(c)
		}
	}

	s.ready = s.ready[:0]
	s.resumed = 0
}

// resume runs a coroutine until it parks or ends. When the code ends by runtime.Goexit, so does the caller's goroutine: only deferred calls
// follow it.
func (s *scheduler) resume(c *coroutine) {
	c.queued = false
	s.current = c
	defer func() { s.current = nil }()
	c.next()
}

// park suspends the running coroutine until it is woken. It does not return when the execution is unwound instead: Goexit runs the code's
// deferred calls and, unlike a panic, cannot be recovered from. A stack that ends here is parked (see where).
func (s *scheduler) park() {
	if !s.current.yield(struct{}{}) {
		runtime.Goexit()
	}
}

// parkForGood suspends the running coroutine until it is unwound.
func (s *scheduler) parkForGood() {
	for {
		s.park()
	}
}

// awaitOne is await for one task, without a slice of the caller's.
func (s *scheduler) awaitOne(in *scope, t *Task) int {
	s.current.single[0] = t
	return s.await(in, s.current.single[:])
}

// await parks the running coroutine until one of the tasks is done, and returns the index of the first that is. It returns -1 when the scope
// is cancelled, whatever the state of the tasks.
func (s *scheduler) await(in *scope, tasks []*Task) int {
	if in.cancelled != nil {
		return -1
	}
	i := firstDone(tasks)
	if i >= 0 {
		return i
	}

	c := s.current
	s.attend(c, in, tasks)
	for i < 0 && in.cancelled == nil {
		s.park()
		i = firstDone(tasks)
	}
	s.leave(c, in, tasks)

	if in.cancelled != nil {
		return -1
	}
	return i
}

// awaitAll awaits tasks one after the other. It reports false when the scope is cancelled before all are done.
func awaitAll(s *scheduler, in *scope, tasks []*Task) bool {
	c := s.current
	c.together = tasks
	defer func() { c.together = nil }()
	for i := range tasks {
		if s.await(in, tasks[i:i+1]) < 0 {
			return false
		}
	}
	return true
}

// awaitWanted parks the running coroutine until one of the tasks that are done is wanted, which it returns, or none is and all are done, or the
// scope is cancelled. Each task is asked about once, however many come one after the other, and the code has observed it then.
func (s *scheduler) awaitWanted(in *scope, tasks []*Task, wanted func(*Task) bool) *Task {
	var open, settled []*Task
	for _, t := range tasks {
		if t.done {
			settled = append(settled, t)
		} else {
			open = append(open, t)
		}
	}

	c := s.current
	c.told = &settled
	s.attend(c, in, open)
	defer func() { c.told = nil }()
	defer s.leave(c, in, open)
	for looked := 0; in.cancelled == nil; s.park() {
		for ; looked < len(settled); looked++ {
			settled[looked].observe()
			if wanted(settled[looked]) {
				return settled[looked]
			}
		}
		if looked == len(tasks) {
			return nil
		}
	}
	return nil
}

// attend has a coroutine woken when one of the tasks settles, and when the scope is cancelled.
func (s *scheduler) attend(c *coroutine, in *scope, tasks []*Task) {
	c.awaits = tasks
	in.enlist(c)
	for _, t := range tasks {
		t.addWaiter(c)
	}
}

// leave takes back attend.
func (s *scheduler) leave(c *coroutine, in *scope, tasks []*Task) {
	for _, t := range tasks {
		t.removeWaiter(c)
	}
	c.awaits = nil
	in.dismiss(c)
}

func firstDone(tasks []*Task) int {
	return slices.IndexFunc(tasks, (*Task).IsDone)
}

// awaited returns the tasks that the coroutines are parked for.
func (s *scheduler) awaited() (tasks []*Task) {
	for _, c := range s.coroutines {
		tasks = append(tasks, c.awaits...)
	}
	return tasks
}

// suspended returns how many coroutines are not over.
func (s *scheduler) suspended() (n int) {
	for _, c := range s.coroutines {
		if !c.over {
			n++
		}
	}
	return n
}

// voidWith voids the execution, if err is not nil. The first error stays.
func (s *scheduler) voidWith(err error) {
	if s.void == nil {
		s.void = err
	}
}

// fail voids the execution from within its code. It does not return: the coroutine stays parked until it is unwound.
func (s *scheduler) fail(err error) {
	s.voidWith(err)
	s.parkForGood()
}

// stuck reports whether the execution may not go on.
func (s *scheduler) stuck() bool { return s.void != nil || s.gate.foreignCall() != nil }

// verdict returns why the execution is void; nil when it is not. A foreign goroutine's call comes first: it may have caused the rest.
func (s *scheduler) verdict() error {
	if f := s.gate.foreignCall(); f != nil {
		return f
	}
	return s.void
}

// enter is called first by whatever decides or waits. It returns only to a coroutine of this execution while a turn or a replay is under way.
func (s *scheduler) enter() {
	mode := s.gate.state()
	if mode == asking {
		endMisuse(s)
	}
	// A replay needs no such check, which would make it slow: the turn that made the history had no foreign calls.
	if mode == resting || mode != replaying && onForeignGoroutine() {
		s.expel()
	}
	if mode == unwinding {
		runtime.Goexit() // again, in each deferred call that gets here
	}
	if s.current == nil {
		s.expel()
	}
	if mode == abandoned || s.gate.foreignCall() != nil {
		s.parkForGood()
	}

	if s.aside {
		panic("replay: a side effect function used the orchestration's context; a replay would not repeat the call")
	}
}

// outside runs code that may not use the execution: the function of a side effect.
func (s *scheduler) outside(code func()) {
	s.aside = true
	defer func() { s.aside = false }()
	code()
}

// expel ends the calling goroutine, which is not the execution's, and voids the execution. A panic would end the process. When no turn is
// under way, the last turn may be committed and no other may follow, so the call is logged.
func (s *scheduler) expel() {
	defer runtime.Goexit()

	e := &ForeignGoroutineError{InstanceID: s.options.InstanceID, Stack: stack.Current()}
	if first := s.gate.recordForeign(e); !first {
		return
	}

	if !s.gate.is(resting) && !s.gate.is(unwinding) {
		return
	}
	late := *e // a turn may hold e by now
	late.Late = true
	if s.options.Faults != nil {
		s.options.Faults(faults.Event{Kind: faults.ForeignGoroutine, InstanceID: s.options.InstanceID, Err: &late})
	}
	if s.options.Logger != nil {
		s.options.Logger.Error("orchestration context used on a foreign goroutine after its turn, ignoring the call",
			"event", logevent.OrchestrationForeignGoroutine, "instance", s.options.InstanceID,
			"execution", s.options.ExecutionID, "error", &late)
	}
}

// lastCalls is how often a turn gives way to goroutines that its code has left behind, at the end of the execution.
const lastCalls = 50

// yield lets goroutines that the code has left behind make their calls now, which voids the turn. It costs nothing where there are no more
// goroutines than before the turn.
func (s *scheduler) yield() {
	for range lastCalls {
		if runtime.NumGoroutine() <= s.goroutines || s.gate.foreignCall() != nil {
			return
		}
		runtime.Gosched()
	}
}

// unwind ends every coroutine, one after another, running the code's deferred calls.
func (s *scheduler) unwind() {
	s.gate.unwind()

	for _, c := range s.coroutines {
		if c.over {
			continue
		}
		if r := stopped(c); r != nil && s.options.Logger != nil {
			s.options.Logger.Error("deferred call panicked while the instance was unloaded",
				"event", logevent.OrchestrationDeferPanicked, "instance", s.options.InstanceID,
				"execution", s.options.ExecutionID, "panic", r)
		}
	}
}
