package replay

import (
	"fmt"
	"runtime"
	"time"

	"github.com/perdure/perdure/history"
)

// closeLimit is how long Close waits for the code's deferred calls.
const closeLimit = time.Second

// result is what a turn's goroutine hands back.
type result struct {
	events    []history.Event
	consumed  int
	ended     bool
	continued *Continuation
	lastID    int64
	bytes     int
	err       error
}

// attempt runs work on a goroutine of its own, since code that blocks never gives it back, and code that calls Goexit ends
// it. In both cases the execution is in order; what it came to is in it.
func (i *Instance) attempt(work func()) (Outcome, error) {
	if !i.take() {
		return Outcome{}, fmt.Errorf("replay: instance %q: used while a turn runs, or after it was given up", i.x.options.InstanceID)
	}
	go func() {
		i.x.goroutines = runtime.NumGoroutine()
		defer i.finish()
		work()
	}()
	r := i.watch()
	if r.err != nil {
		return Outcome{}, r.err
	}
	i.last = r
	i.last.events, i.last.continued = nil, nil
	return Outcome{Events: r.events, Consumed: r.consumed, Ended: r.ended, Continued: r.continued}, nil
}

// finish hands back what the execution came to.
func (i *Instance) finish() {
	r := i.x.leave()
	if i.release() {
		i.unwind()
	}
	i.done <- r
}

// watch waits for a turn, but not for ever.
func (i *Instance) watch() result {
	if i.timer == nil {
		i.timer = time.NewTimer(i.limit)
	} else {
		i.timer.Reset(i.limit)
	}
	defer i.timer.Stop()
	_, fetches := i.x.fetching(0)
	for waits := true; waits; {
		select {
		case r := <-i.done:
			return r
		case <-i.timer.C:
		}
		if waits, fetches = i.x.fetching(fetches); waits { // the time was the store's
			i.timer.Reset(i.limit)
		}
	}
	if !i.giveUp() {
		return <-i.done // it came back at the last moment
	}
	if f := i.x.foreign.Load(); f != nil {
		return result{err: f} // the code waits for the goroutine that was ended
	}
	return result{err: &BlockedOutsideError{InstanceID: i.x.options.InstanceID, Limit: i.limit, Stack: i.x.where()}}
}

// take gives the execution to a turn's goroutine.
func (i *Instance) take() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.running || i.given {
		return false
	}
	i.running = true
	i.x.mode.CompareAndSwap(resting, live)
	return true
}

// release takes it back. It reports whether the instance was given up meanwhile, so that this goroutine must unwind it.
func (i *Instance) release() (given bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.running = false
	return i.given
}

// giveUp is the watchdog's: the goroutine that has the execution unwinds it, should it ever come back, and the code stops at
// its next call. It reports false when the turn is over after all.
func (i *Instance) giveUp() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.running {
		return false
	}
	i.given = true
	i.x.mode.Store(abandoned)
	return true
}

// retire is Close's. It reports whether the instance had been given up before, and whether a turn's goroutine has it still.
func (i *Instance) retire() (before, running bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	before, i.given = i.given, true
	if i.running {
		i.x.mode.Store(abandoned)
	}
	return before, i.running
}

// Close ends the coroutines: the code's deferred calls run, and none of them gets past a call that decides or waits. It
// reports whether they ended within a second; if not they are left behind, and end when they can. It may be called from
// any goroutine, and again.
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

// unwind is called once, by whoever has the execution when it is given up.
func (i *Instance) unwind() {
	defer close(i.gone)
	i.x.unwind()
}
