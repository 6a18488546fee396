package replay

import (
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure/history"
)

// execution is an orchestration's code with its state. It belongs to whichever goroutine runs the turn, or unwinds it:
// one at a time, so nothing but the atomic fields needs to be safe against others.
type execution struct {
	orchestration Orchestration
	options       Options
	logger        *slog.Logger
	random, uuids *rand.Rand
	status        json.RawMessage // the custom status that the code set last

	input    json.RawMessage
	startAt  time.Time // the body does not run before; messages wait
	spawned  int32     // coroutines, those that are over too
	readable bool      // OrchestrationStarted was replayed
	started  bool      // the body runs
	doomed   bool      // this turn terminates it before that
	ended    bool
	now      time.Time
	lastID   int64
	untaken  int             // bytes of results that wait for their Await
	tasks    map[int64]*Task // by id: those whose outcome is not in history yet
	mail     *mailbox        // nil until there is need of it
	parked   []history.Event // inputs that came while the code could not take them: the next turn does (R18)
	blocked  bool            // history says so last, where it is being replayed
	left     []history.Event // those of them that this turn has not come to yet
	// near are documents of the parked inputs, by reference, that were in memory anyway.
	near      map[string]json.RawMessage
	nearBytes int

	root       scope // of the body; its cancel is that of the instance
	shielded   *ends // of the scope that no cancel reaches
	awaited    map[*Task][]*ends
	coroutines []*coroutine
	ready      []*coroutine // in the order in which they were woken
	resumed    int          // how many of ready have been
	current    *coroutine
	aside      bool // a side effect is being produced: the code may ask for nothing meanwhile

	goroutines int // of the process, before the turn

	replaying bool
	past      []history.Event // the history being replayed
	decidedBy string          // the build whose turn is being replayed
	differing Differences     // what the code gives to others by now
	next      int             // the first of past that is not applied
	out       []history.Event // the events of this turn
	consumed  int             // the messages of this turn that were used up
	continued *Continuation   // what the next execution takes over

	void    error // why this execution may never run again
	mode    atomic.Int32
	fetches atomic.Int64 // twice as many as documents were fetched; odd while one is
	foreign atomic.Pointer[ForeignGoroutineError]
}

// The modes of an execution.
const (
	resting int32 = iota // no turn is under way: nothing of the code's own runs
	live
	reliving  // history
	abandoned // the watchdog gave up: the code parks at its next call
	unwinding // the coroutines end at their next call
)

func newExecution(o Orchestration, opts Options) *execution {
	return &execution{orchestration: o, options: opts, tasks: map[int64]*Task{}}
}

// begin starts the body. It runs when the ready queue comes to it.
func (x *execution) begin() {
	x.started = true
	input := x.input
	x.input = nil
	x.spawn(func() {
		x.protect(func() { x.end(x.orchestration.Body(&Context{x: x, scope: &x.root}, input)) })
	})
}

// protect runs the orchestration's code on its coroutine. Code that ends otherwise than by returning fails the orchestration.
func (x *execution) protect(code func()) {
	returned := false
	defer func() {
		switch {
		case returned:
			return
		case x.mode.Load() == unwinding:
			return // what passes through here is not the code's own doing
		case x.mode.Load() == abandoned:
			_ = recover() // nobody is left to tell, and it must not end the process
			return
		}
		f := exited()
		if r := recover(); r != nil {
			f = Panicked(r)
		}
		x.end(Ending{Kind: history.OrchestrationFailed, Error: f})
	}()
	code()
	returned = true
}

func inline(doc json.RawMessage) history.Payload {
	if doc == nil {
		return nil
	}
	return history.Inline(doc)
}

// run resumes coroutines, in the order in which they became ready, until none can go on.
func (x *execution) run() {
	for x.resumed < len(x.ready) && x.void == nil && !x.ended {
		c := x.ready[x.resumed]
		x.resumed++
		if !c.over {
			x.resume(c)
		}
	}
	x.ready, x.resumed = x.ready[:0], 0
}

// lastCalls is how often a turn gives way to goroutines that its code has left behind, at the end of the execution.
const lastCalls = 50

// yield lets goroutines that the code has left behind call at last, if they do so at once: then the turn is void. It costs nothing where
// there are no more goroutines than before the turn.
func (x *execution) yield() {
	for range lastCalls {
		if runtime.NumGoroutine() <= x.goroutines || x.foreign.Load() != nil {
			return
		}
		runtime.Gosched()
	}
}

// leave ends a turn or a replay and tells what it came to. Code that ended by Goexit took the goroutine of the turn with it,
// so this may not rely on anything that comes after run.
func (x *execution) leave() result {
	if x.ended && !x.replaying {
		x.yield()
	}
	if !x.mode.CompareAndSwap(live, resting) { // before foreign is looked at: who comes later sees that
		x.mode.CompareAndSwap(reliving, resting)
	}
	if x.replaying && x.ended && !x.stuck() && x.next < len(x.past) {
		x.void = x.divergence(x.idle())
	}
	if !x.stuck() && !x.ended {
		x.shed()
	}
	if !x.replaying {
		x.near, x.nearBytes = nil, 0
	}
	r := result{events: x.out, consumed: max(x.consumed, 0), ended: x.ended, continued: x.continued, lastID: x.lastID, bytes: x.bytes(), err: x.void}
	if f := x.foreign.Load(); f != nil {
		r.err = f
	}
	x.out, x.consumed, x.continued, x.left = nil, 0, nil, nil
	x.replaying, x.past, x.next = false, nil, 0 // a suspended instance does not hold its history
	return r
}
