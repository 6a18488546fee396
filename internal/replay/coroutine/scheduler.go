// Package coroutine runs the code of an orchestration on coroutines ([iter.Pull]). It resumes them one at a time, in an
// order that depends only on the history. A waiting coroutine stays parked, even between turns, until it is woken or
// the execution is unwound.
package coroutine

import (
	"iter"
	"log/slog"
	"runtime"
	"slices"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/faults"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/replay/panics"
	"github.com/perdure/perdure/internal/replay/stack"
)

// Options describe an execution.
type Options struct {
	*history.ExecutionRef

	// Mark is unique to the execution in this process, because a query may replay an execution while its turns run.
	Mark string
	// Failed ends the execution with the failure of code that did not return. It is required.
	Failed func(*history.Failure)
	// Logger logs calls after a turn, and Faults observes them. Both may be nil.
	Logger *slog.Logger
	Faults faults.Observer
}

// Scheduler runs the coroutines of an execution one at a time, in the order in which they became ready. It belongs to
// the goroutine that runs the turn or unwinds the execution. Other goroutines may use only its Gate. W is the type of
// Coroutine.Wait.
type Scheduler[W any] struct {
	options      Options
	gate         Gate
	coroutines   []*Coroutine[W] // in the order of their starts
	ready        []*Coroutine[W] // in the order in which they were woken
	resumed      int             // the number of resumed coroutines in ready
	current      *Coroutine[W]   // nil between two coroutines
	spawned      int32           // the number of started coroutines
	inSideEffect bool            // the function of a side effect runs
	goroutines   int             // of the process, before the turn
	void         error           // why the execution may not run again
}

// Init sets the options of a new Scheduler.
func (s *Scheduler[W]) Init(opts *Options) { s.options = *opts }

// Gate returns the gate of the execution.
func (s *Scheduler[W]) Gate() *Gate { return &s.gate }

// CountGoroutines records the number of goroutines before a turn, for Yield.
func (s *Scheduler[W]) CountGoroutines() { s.goroutines = runtime.NumGoroutine() }

// Spawn creates a coroutine. It first runs after the coroutines that are ready now. If fn panics or calls Goexit, the
// execution fails.
func (s *Scheduler[W]) Spawn(fn func()) {
	c := &Coroutine[W]{number: s.spawned}
	s.spawned++

	c.next, c.stop = iter.Pull(func(yield func(struct{}) bool) {
		c.yield = yield
		s.Label()
		defer func() { c.ended = true }()
		returned := false
		defer s.failUnless(&returned)
		fn()
		returned = true
	})

	// Ended coroutines need no stop. Dropping them keeps the list short for code that starts coroutines forever.
	s.coroutines = append(CompactOrGrow(s.coroutines, (*Coroutine[W]).Ended), c)
	s.Wake(c)
}

// failUnless is deferred in each coroutine. It reports code that has not returned. It is not a function that calls the
// code, because each frame below the code makes Enter slower.
func (s *Scheduler[W]) failUnless(returned *bool) {
	switch {
	case *returned:
		return
	case s.gate.Is(Unwinding):
		return // Unwind ends the coroutine and recovers panics of deferred calls
	case s.gate.Is(Abandoned):
		_ = recover() // the turn has failed, and a panic must not end the process
		return
	}

	f := panics.Goexit()
	if r := recover(); r != nil {
		f = panics.FailureOf(r)
	}
	s.options.Failed(f)
}

// CompactOrGrow provides capacity for one more element of a list. It removes the elements for which obsolete returns
// true. If there are few such elements, the list grows, so that the cost of the removals stays proportional to the
// number of additions.
func CompactOrGrow[T any](list []T, obsolete func(T) bool) []T {
	if len(list) < cap(list) {
		return list
	}
	list = slices.DeleteFunc(list, obsolete)
	return slices.Grow(list, len(list)/4+1)
}

// Wake puts a coroutine in the ready queue, unless it is there.
func (s *Scheduler[W]) Wake(c *Coroutine[W]) {
	if !c.queued {
		c.queued = true
		s.ready = append(s.ready, c)
	}
}

// Run resumes the ready coroutines in order until all wait, the execution is void, or the code sets ended.
func (s *Scheduler[W]) Run(ended *bool) {
	for s.resumed < len(s.ready) && s.void == nil && !*ended {
		c := s.ready[s.resumed]
		s.resumed++
		if !c.ended {
			s.resume(c)
		}
	}

	s.ready = s.ready[:0]
	s.resumed = 0
}

// resume runs a coroutine until it parks or ends. If the code ends with runtime.Goexit, the caller's goroutine ends
// too, and only deferred calls run.
func (s *Scheduler[W]) resume(c *Coroutine[W]) {
	c.queued = false
	s.current = c
	defer func() { s.current = nil }()
	c.next()
}

// Current returns the running coroutine.
func (s *Scheduler[W]) Current() *Coroutine[W] { return s.current }

// All returns the coroutines in the order of their starts. Some of them may have ended.
func (s *Scheduler[W]) All() []*Coroutine[W] { return s.coroutines }

// Suspended returns the number of coroutines that have not ended.
func (s *Scheduler[W]) Suspended() (n int) {
	for _, c := range s.coroutines {
		if !c.ended {
			n++
		}
	}
	return n
}

// Park suspends the running coroutine until it is woken. It does not return if the execution is unwound: Goexit runs
// the deferred calls of the code and, unlike a panic, cannot be recovered.
func (s *Scheduler[W]) Park() {
	if !s.current.yield(struct{}{}) {
		runtime.Goexit()
	}
}

// ParkForever suspends the running coroutine until the execution is unwound.
func (s *Scheduler[W]) ParkForever() {
	for {
		s.Park()
	}
}

// Void makes the execution void if err is not nil. The first error stays.
func (s *Scheduler[W]) Void(err error) {
	if s.void == nil {
		s.void = err
	}
}

// Fail makes the execution void from within its code. It does not return: the coroutine stays parked until the
// execution is unwound.
func (s *Scheduler[W]) Fail(err error) {
	s.Void(err)
	s.ParkForever()
}

// IsVoid reports whether the execution must not continue.
func (s *Scheduler[W]) IsVoid() bool { return s.void != nil || s.gate.ForeignCall() != nil }

// Err returns the reason for which the execution is void, or nil. A call of a foreign goroutine precedes other errors,
// because it may have caused them.
func (s *Scheduler[W]) Err() error {
	if f := s.gate.ForeignCall(); f != nil {
		return f
	}
	return s.void
}

// Enter must be the first call of each function that decides or waits. It returns only on a coroutine of this
// execution, while a turn or a replay is running.
func (s *Scheduler[W]) Enter() {
	mode := s.gate.Mode()
	if mode == Querying {
		s.endMisuse()
	}
	// A replay skips the check, which is slow: the turn that recorded the history had no foreign calls.
	if mode == BetweenTurns || mode != Replaying && isForeign(bottom()) {
		s.rejectForeignCall()
	}
	if mode == Unwinding {
		runtime.Goexit() // repeated in each deferred call that calls Enter
	}
	if s.current == nil {
		s.rejectForeignCall()
	}
	if mode == Abandoned || s.gate.ForeignCall() != nil {
		s.ParkForever()
	}

	if s.inSideEffect {
		panic("replay: a side effect function used the orchestration's context; a replay would not repeat the call")
	}
}

// RunSideEffect runs code that must not use the execution: the function of a side effect.
func (s *Scheduler[W]) RunSideEffect(code func()) {
	s.inSideEffect = true
	defer func() { s.inSideEffect = false }()
	code()
}

// endMisuse ends the calling goroutine, which belongs to a query handler.
func (s *Scheduler[W]) endMisuse() {
	s.gate.recordMisuse(&QueryMisuseError{InstanceID: s.options.InstanceID, Stack: stack.Current()})
	runtime.Goexit()
}

// rejectForeignCall ends the calling goroutine, which is foreign, and makes the execution void. A panic would end the
// process. If no turn is running, the last turn may be committed, and no later turn may report the call. The call is
// therefore logged.
func (s *Scheduler[W]) rejectForeignCall() {
	defer runtime.Goexit()

	e := &ForeignGoroutineError{InstanceID: s.options.InstanceID, Stack: stack.Current()}
	if first := s.gate.recordForeign(e); !first {
		return
	}
	if !s.gate.Is(BetweenTurns) && !s.gate.Is(Unwinding) {
		return
	}
	late := *e // a turn may already use e
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

// maxYields is the number of times that Yield yields the processor.
const maxYields = 50

// Yield lets goroutines that the code has started make their calls now, which makes the turn void. Yield returns
// immediately unless there are more goroutines than before the turn. It is called when the execution ends, because no
// later turn reports such calls.
func (s *Scheduler[W]) Yield() {
	for range maxYields {
		if runtime.NumGoroutine() <= s.goroutines || s.gate.ForeignCall() != nil {
			return
		}
		runtime.Gosched()
	}
}

// Unwind ends all coroutines, one after the other, and runs the deferred calls of the code.
func (s *Scheduler[W]) Unwind() {
	s.gate.unwind()

	for _, c := range s.coroutines {
		if c.ended {
			continue
		}
		if r := c.stopped(); r != nil && s.options.Logger != nil {
			s.options.Logger.Error("deferred call panicked while the instance was unloaded",
				"event", logevent.OrchestrationDeferPanicked, "instance", s.options.InstanceID,
				"execution", s.options.ExecutionID, "panic", r)
		}
	}
}
