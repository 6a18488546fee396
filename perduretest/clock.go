package perduretest

import (
	"slices"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/internal/simhub"
)

// Now returns the virtual time.
func (e *Env) Now() (now time.Time) {
	e.do(func() { now = time.Now() })
	return now
}

// RunUntilIdle runs all messages, timers and code that are due, until none is due. It does not advance the clock.
func (e *Env) RunUntilIdle() {
	e.t.Helper()
	e.deployed.reject(e.t, "RunUntilIdle")
	e.outside("RunUntilIdle")
	e.drive(e.clock.settle)
}

// Advance advances the clock by d and runs all messages, timers and code that become due, each at its time. It also
// runs the hub's sweeper, which processes bulk jobs and retention.
func (e *Env) Advance(d time.Duration) {
	e.t.Helper()
	if e.deployed != nil {
		_ = e.deployed.sleep(e.t.Context(), d) // the context ends with the test
		return
	}
	e.outside("Advance")
	until := e.Now().Add(d)
	for {
		at, planned := e.agenda.next()
		stop := until
		if planned && at.Before(until) {
			stop = at
		}
		e.drive(func() { e.clock.moveTo(stop) })
		if !planned || at.After(until) {
			e.drive(e.clock.settle)
			return
		}
		e.agenda.run()
	}
}

// AfterFunc calls f after d of virtual time, before the messages and timers that are due at that time. f runs on the
// test's goroutine, inside Advance or a wait. It may use the Client, fail the test and call AfterFunc.
func (e *Env) AfterFunc(d time.Duration, f func()) {
	e.agenda.add(e.Now().Add(d), f)
}

// agenda contains the functions of AfterFunc in the order of their times. Only the goroutine of the test uses it.
type agenda struct{ plans []plan }

type plan struct {
	at time.Time
	f  func()
}

func (a *agenda) add(at time.Time, f func()) {
	i, _ := slices.BinarySearchFunc(a.plans, at, func(p plan, at time.Time) int {
		if p.at.After(at) {
			return 1
		}
		return -1 // after earlier functions for the same time
	})
	a.plans = slices.Insert(a.plans, i, plan{at, f})
}

// next returns the time of the first function.
func (a *agenda) next() (at time.Time, ok bool) {
	if len(a.plans) == 0 {
		return at, false
	}
	return a.plans[0].at, true
}

// run runs the first function.
func (a *agenda) run() {
	f := a.plans[0].f
	a.plans = a.plans[1:]
	f()
}

// clock moves virtual time. Use it in the bubble, except for isPast and now.
type clock struct {
	hub *simhub.Hub
	// reached is the virtual time in nanoseconds since 1970.
	reached *atomic.Int64
	// halted stops the clock if the work at one moment of virtual time does not end.
	halted *atomic.Bool
}

// isPast reports whether virtual time has reached a time.
func (c clock) isPast(t time.Time) bool { return c.reached != nil && c.reached.Load() >= t.UnixNano() }

// now returns the virtual time in nanoseconds since 1970, or 0 before the start.
func (c clock) now() int64 {
	if c.reached == nil {
		return 0
	}
	return c.reached.Load()
}

// moveTo moves the clock to a time and runs the work that is due before that time.
func (c clock) moveTo(until time.Time) {
	for c.settle(); !c.halted.Load() && time.Now().Before(until); {
		c.pass(time.Until(until))
		if time.Now().Before(until) {
			c.settle()
		}
	}
}

// settle runs all work that can run now, one step after another. Calls of running functions precede new messages.
func (c clock) settle() {
	step := func() bool {
		synctest.Wait()
		return !c.halted.Load() && (c.hub.Order.Next() || c.hub.Cloud.Step() || c.hub.Sweeper.Step())
	}
	for step() {
	}
	c.hub.Sweeper.Close()
}

// pass moves the clock by at most d, and stops when new work may be due.
func (c clock) pass(d time.Duration) {
	if due, ok := c.hub.Cloud.NextDue(); ok {
		d = min(d, time.Until(due))
	}
	if tick, ok := c.hub.Sweeper.Next(); ok {
		d = min(d, time.Until(tick))
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c.hub.Cloud.Changed():
	case <-c.hub.Order.Arrived():
	case <-c.hub.Sweeper.Ended():
	case <-t.C:
	}
	c.reached.Store(time.Now().UnixNano())
}
