package replay

import (
	"fmt"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/goroutine"
)

// closeLimit is the time that Close waits for the deferred calls of the code.
const closeLimit = time.Second

// result is the result of a turn, a replay or a query.
type result struct {
	events          []history.Event
	consumed        int
	ended           bool
	continued       *Continuation
	repeated        map[string]string // names, by the IDs of updates
	callers         map[string][]history.Parent
	rejectedCallers []history.Parent
	waits           []WaitEnd
	lastID          int64
	bytes           int
	err             error
	output          QueryOutput // of a query
}

// attempt runs a turn or a replay on its own goroutine, because code that blocks never returns, and code that calls
// Goexit ends the goroutine. After Goexit, the execution is intact and has the result of the turn.
func (i *Instance) attempt(work func()) (Outcome, error) {
	if !i.acquire() {
		return Outcome{}, fmt.Errorf("replay: instance %q: used while a turn runs, or after the instance was abandoned",
			i.x.options.InstanceID)
	}

	go func() {
		goroutine.ReserveStack()
		i.x.scheduler.CountGoroutines()
		defer i.finish()
		work()
	}()

	r := i.awaitTurn()
	if r.err != nil {
		return Outcome{}, r.err
	}

	i.last = result{ended: r.ended, lastID: r.lastID, bytes: r.bytes}
	return Outcome{
		Events: r.events, Consumed: r.consumed, Ended: r.ended, Continued: r.continued, Repeated: r.repeated,
		Callers: r.callers, RejectedCallers: r.rejectedCallers, Waits: r.waits,
	}, nil
}

// finish sends the result. It unwinds the execution if the instance was abandoned during the turn.
func (i *Instance) finish() {
	r := i.x.finish()
	if i.release() {
		i.unwind()
	}
	i.done <- r
}

// awaitTurn waits for a turn until its time limit. Time for loading payloads does not count.
func (i *Instance) awaitTurn() result {
	if i.timer == nil {
		i.timer = time.NewTimer(i.limit)
	} else {
		i.timer.Reset(i.limit)
	}
	defer i.timer.Stop()

	_, calls := i.x.payloads.CallsSince(0)
	for waits := true; waits; {
		select {
		case r := <-i.done:
			return r
		case <-i.timer.C:
		}
		if waits, calls = i.x.payloads.CallsSince(calls); waits {
			i.timer.Reset(i.limit)
		}
	}

	if !i.abandon() {
		return <-i.done // the turn ended at the last moment
	}
	if f := i.x.scheduler.Gate().ForeignCall(); f != nil {
		return result{err: f} // the code may wait for the goroutine that the engine ended
	}
	if misuse := i.x.scheduler.Gate().Misuse(); misuse != nil {
		return result{err: misuse} // as above
	}
	return result{err: &BlockedOutsideError{
		InstanceID: i.x.options.InstanceID, Limit: i.limit, Stack: i.x.scheduler.Stacks(),
	}}
}

// acquire transfers the execution to the goroutine of a turn.
func (i *Instance) acquire() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.running || i.abandoned {
		return false
	}
	i.running = true
	i.x.scheduler.Gate().StartTurn()
	return true
}

// release ends the ownership of the execution by the goroutine of a turn. It returns true if the instance was abandoned
// during the turn, so that this goroutine must unwind it.
func (i *Instance) release() (abandoned bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.running = false
	return i.abandoned
}

// abandon abandons the instance because its turn took too long. The code stops at its next call, and the goroutine of
// the turn unwinds the execution if it ever ends. abandon returns false if the turn has ended.
func (i *Instance) abandon() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.running {
		return false
	}
	i.abandoned = true
	i.x.scheduler.Gate().Abandon()
	return true
}

// retire abandons the instance because it is closed. It reports whether the instance was abandoned before, and whether
// a turn's goroutine still owns the execution.
func (i *Instance) retire() (before, running bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	before = i.abandoned
	i.abandoned = true
	if i.running {
		i.x.scheduler.Gate().Abandon()
	}
	return before, i.running
}

// Close ends the coroutines. The deferred calls of the code run, up to a call that decides or waits. Close reports
// whether the coroutines ended within a second. The other coroutines are abandoned, and end when their code returns.
// Close is safe for concurrent use and can be called repeatedly.
func (i *Instance) Close() bool {
	before, running := i.retire()
	switch {
	case !before && !running:
		go i.unwind()
	case before && running:
		return false // the watchdog has waited long enough
	}

	timer := time.NewTimer(closeLimit)
	defer timer.Stop()
	select {
	case <-i.gone:
		return true
	case <-timer.C:
		return false
	}
}

// unwind ends the coroutines. It is called once, by the goroutine that owns the execution when the instance is
// abandoned.
func (i *Instance) unwind() {
	defer close(i.gone)
	i.x.scheduler.Unwind()
}
