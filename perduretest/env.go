package perduretest

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simhub"
)

// Env is a task hub in a test. Its methods, and those of its Client, are for one goroutine at a time: the test's.
type Env struct {
	t      *testing.T
	hub    *simhub.Hub
	client *client.Client
	// calls go to the goroutine that lives in the bubble. The channel is made outside of it, so that waiting for a call
	// holds virtual time still.
	calls chan func()
}

// Option changes what an Env is made of.
type Option func(*simhub.Options)

// WithLogger makes the engine, and the orchestrations' loggers, log to l. By default nothing is logged.
func WithLogger(l *slog.Logger) Option { return func(o *simhub.Options) { o.Logger = l } }

// WithoutCache keeps no orchestration warm: every turn replays the history from its beginning, which finds orchestrations
// that are not deterministic.
func WithoutCache() Option { return func(o *simhub.Options) { o.CacheBytes = -1 } }

// WithJitter leaves retry policies their jitter. By default there is none: every wait is exactly the interval of its policy.
func WithJitter() Option { return func(o *simhub.Options) { o.Jitter = true } }

// New makes a hub that runs what r holds. It ends with the test; an activity that is still running then gets the end of its
// context.
func New(t *testing.T, r *perdure.Registry, opts ...Option) *Env {
	t.Helper()
	o := simhub.Options{
		Registry: r, BatchSize: 1, Ordered: true, // one at a time: so the order is the same in every run
		Reports:       true,
		SendAnewAfter: -1, // no later build will know an activity that r does not: it is given up, and the hub comes to rest
	}
	for _, opt := range opts {
		opt(&o)
	}
	log := slog.DiscardHandler
	if o.Logger != nil {
		log = o.Logger.Handler()
	}
	o.Logger = slog.New(vigilant{log, t})
	e := &Env{t: t, calls: make(chan func())}
	over := make(chan struct{})
	go func() {
		defer close(over)
		synctest.Test(t, func(*testing.T) { e.live(o) })
	}()
	t.Cleanup(func() {
		close(e.calls)
		<-over
	})
	e.do(func() {}) // the hub is made
	if e.hub == nil {
		t.FailNow()
	}
	return e
}

// live is the bubble's own goroutine: it makes the hub and runs what it is told.
func (e *Env) live(o simhub.Options) {
	hub, err := simhub.New(o)
	if err != nil {
		e.t.Errorf("perduretest: %v", err)
		for call := range e.calls {
			call()
		}
		return
	}
	e.hub = hub
	e.client = client.New(&bubble{Provider: hub.Provider, env: e}, client.WithClock(e.Now))
	for call := range e.calls {
		call()
	}
	e.leave()
}

// do runs f in the bubble, and waits for it.
func (e *Env) do(f func()) {
	done := make(chan struct{})
	e.calls <- func() {
		defer close(done)
		f()
	}
	<-done
}

// Client talks to the hub. Its Wait advances the clock until the instance is over; it fails when nothing is left that could
// end it.
func (e *Env) Client() *client.Client { return e.client }

// Now is the virtual time.
func (e *Env) Now() (now time.Time) {
	e.do(func() { now = time.Now() })
	return now
}

// RunUntilIdle runs everything that is due, until nothing is. It does not move the clock.
func (e *Env) RunUntilIdle() { e.do(e.settle) }

// Advance moves the clock by d, and runs everything that becomes due on the way, each at its time.
func (e *Env) Advance(d time.Duration) {
	e.do(func() {
		until := time.Now().Add(d)
		for e.settle(); time.Now().Before(until); e.settle() {
			e.pass(time.Until(until))
		}
	})
}

// settle lets happen what can happen now, one thing after the other: what functions are about to do goes before what they are given next.
func (e *Env) settle() {
	for synctest.Wait(); e.hub.Order.Next() || e.hub.Cloud.Step(); synctest.Wait() {
	}
}

// pass lets the clock move until something may have become due, at most by d.
func (e *Env) pass(d time.Duration) {
	if due, ok := e.hub.Cloud.NextDue(); ok {
		d = min(d, time.Until(due))
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-e.hub.Cloud.Changed():
	case <-e.hub.Order.Arrived():
	case <-t.C:
	}
}

// patience is how much virtual time what is still running gets to end once the test is over.
const patience = 24 * time.Hour

// leave ends the hub: all goroutines of the bubble must be gone when its own returns.
func (e *Env) leave() {
	e.hub.Close()
	synctest.Wait()
	if e.hub.Cloud.InFlight() == 0 {
		return
	}
	time.Sleep(patience)
	synctest.Wait()
	if n := e.hub.Cloud.InFlight(); n > 0 {
		e.t.Errorf("perduretest: %d activities or turns did not end with their context, nor within %v after it", n, patience)
	}
}
