package replay

import (
	"encoding/json"
	"log/slog"
	"math/rand/v2"
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

	input    json.RawMessage
	readable bool // OrchestrationStarted was replayed
	started  bool // the body runs
	ended    bool
	now      time.Time
	lastID   int64
	tasks    map[int64]*Task // by id: those whose outcome is not in history yet

	coroutines []*coroutine
	ready      []*coroutine // in the order in which they were woken
	resumed    int          // how many of ready have been
	current    *coroutine

	replaying bool
	past      []history.Event // the history being replayed
	next      int             // the first of past that is not applied
	out       []history.Event // the events of this turn
	consumed  int             // the messages of this turn that were used up

	void    error // why this execution may never run again
	mode    atomic.Int32
	foreign atomic.Pointer[ForeignGoroutineError]
}

// The modes of an execution.
const (
	live      int32 = iota
	abandoned       // the watchdog gave up: the code parks at its next call
	unwinding       // the coroutines end at their next call
)

func newExecution(o Orchestration, opts Options) *execution {
	return &execution{orchestration: o, options: opts, tasks: map[int64]*Task{}}
}

// outstanding is the task that an outcome settles; nil when there is none, or its outcome is in history already.
func (x *execution) outstanding(ev *history.Event) *Task {
	t := x.tasks[ev.SourceEventID]
	if t == nil || !t.settledBy(ev.Kind) {
		return nil
	}
	return t
}

// begin starts the body. It runs when the ready queue comes to it.
func (x *execution) begin() {
	x.started = true
	input := x.input
	x.input = nil
	x.spawn(func() { x.body(input) })
}

// body runs the orchestration's code and decides how it ended.
func (x *execution) body(input json.RawMessage) {
	var end Ending
	returned := false
	defer func() {
		if x.mode.Load() != live {
			return // unwinding: what passes through here is not the code's own doing
		}
		if r := recover(); r != nil {
			end = Ending{Kind: history.OrchestrationFailed, Error: panicked(r)}
		} else if !returned {
			end = Ending{Kind: history.OrchestrationFailed, Error: exited()}
		}
		x.end(end)
	}()
	end = x.orchestration.Body(&Context{x}, input)
	returned = true
}

func (x *execution) end(e Ending) {
	x.enter()
	if ev, added := x.decide(decision{kind: e.Kind}); added {
		ev.Output, ev.Error = inline(e.Output), e.Error
	}
	x.ended = true
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

// leave ends a turn or a replay and tells what it came to. Code that ended by Goexit took the goroutine of the turn with it,
// so this may not rely on anything that comes after run.
func (x *execution) leave() result {
	if x.replaying && x.ended && !x.stuck() && x.next < len(x.past) {
		x.void = x.divergence(x.idle())
	}
	r := result{events: x.out, consumed: x.consumed, ended: x.ended, lastID: x.lastID, bytes: x.bytes(), err: x.void}
	if f := x.foreign.Load(); f != nil {
		r.err = f
	}
	x.out, x.consumed = nil, 0
	x.replaying, x.past, x.next = false, nil, 0 // a suspended instance does not hold its history
	return r
}
