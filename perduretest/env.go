package perduretest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/perduretest/internal/goroutines"
)

// Env is a task hub in a test. Its methods and its Client must be used by one goroutine at a time, normally the test's.
// An activity can also use the Client with its context. A server of the test can use the Client while an activity of
// WithNetwork calls the server.
type Env struct {
	t        *testing.T
	hub      *simhub.Hub
	client   *client.Client
	admin    *admin.Client
	clock    clock
	stubs    stubs
	log      callLog
	agenda   agenda
	progress progress
	faults   faultChecks
	builds   int // number of Deploy calls

	// work receives functions for the goroutine of the bubble. The channel is created outside of the bubble, so that
	// virtual time does not pass while the goroutine waits.
	work chan func()
	// started is closed when the bubble has started, and ended is closed when the bubble has ended. close closes the
	// channel closing, which ends the bubble.
	started, ended, closing chan struct{}
	close                   func()
	watchdog                watchdog
	injector                simhub.FaultInjector
	network                 *network
	deployed                *deployedHub // nil in virtual time
	// unwinding is set when the test has ended and activities must end. abandoned is set when code hangs, so that the
	// bubble is abandoned.
	unwinding, abandoned atomic.Bool
}

// New returns an Env that runs the code of r. The Env ends with the test. The contexts of activities that are still
// running are then cancelled.
//
// Every turn replays its history from the beginning, so that an orchestration that depends on randomness, on map order
// or on the clock fails the test. WithCache keeps instances warm instead, like a deployed hub. The test also fails if
// an orchestration or activity blocks forever or never ends, or if an activity ignores its cancelled context. Use
// Env.Expect or WithoutFaultCheck to accept such a Fault.
func New(t *testing.T, r *perdure.Registry, opts ...Option) *Env {
	t.Helper()
	if goroutines.Current().Bubble != "" {
		t.Fatal("perduretest: New: an Env has its own virtual time; call New outside of synctest.Test")
	}
	if r == nil {
		t.Fatal("perduretest: New: registry is nil")
	}
	e := &Env{
		t: t, work: make(chan func()), started: make(chan struct{}), ended: make(chan struct{}),
		closing: make(chan struct{}),
	}
	o := options{hangTimeout: defaultHangTimeout, Options: simhub.Options{
		Registry:   e.stubs.registryFor(e, r),
		BatchSize:  1, // one message at a time, so that the order is fixed
		Ordered:    true,
		Sweep:      true,
		CacheBytes: -1,
		Reports:    true,
		Exclusive:  true,
		// The message of an unregistered activity is not sent again, so that the hub becomes idle.
		ResendAfterDeliveries: -1,
	}}
	for _, opt := range opts {
		opt.apply(&o)
	}
	e.close = sync.OnceFunc(func() { close(e.closing) })
	e.watchdog = watchdog{env: e, hangTimeout: o.hangTimeout}
	e.faults.env = e
	e.network = newNetwork(&o)
	o.Intercept = e.injector.Intercept
	o.Interceptors = append(o.Interceptors, e.progress.interceptor())
	o.Faults = e.faults.observe
	if err := checkFaults(o.unchecked); err != nil {
		t.Fatalf("perduretest: WithoutFaultCheck: %v", err)
	}
	e.faults.ignore(o.unchecked)
	go e.network.issue(e.ended)
	go e.runBubble(&o)
	t.Cleanup(e.end)
	select {
	case <-e.started:
	case <-e.ended:
	}
	if e.hub == nil {
		t.FailNow()
	}
	return e
}

// runBubble runs the bubble. It recovers the panic of synctest for goroutines that never end.
func (e *Env) runBubble(o *options) {
	defer close(e.ended)
	defer func() {
		if r := recover(); r != nil && !e.t.Failed() {
			e.faults.checkLeft(r)
		}
	}()
	synctest.Test(e.t, func(*testing.T) { e.serve(o) })
}

// serve is the goroutine of the bubble. It creates the hub and runs the functions that work receives.
func (e *Env) serve(o *options) {
	e.make(o)
	if o.crash.at > 0 {
		e.injector.CrashAt(o.crash.at, o.crash.after)
	}
	close(e.started)
	for left := false; !left; {
		select {
		case f := <-e.work:
			f()
		case <-e.closing:
			left = true
		}
	}
	if e.hub != nil {
		e.unwind()
	}
}

// make creates the hub.
func (e *Env) make(o *options) {
	e.watchdog.bubble = goroutines.Current().Bubble
	hub, err := simhub.New(o.Options)
	if err != nil {
		e.errorf("perduretest: %v", err)
		return
	}
	if fault := faultOf(o.tables, hub.Cloud.Table.Name); fault != "" {
		e.errorf("perduretest: %s", fault)
		return
	}
	for _, t := range o.tables {
		hub.Cloud.Table.Add(t)
	}
	e.hub = hub
	e.clock = clock{hub, &atomic.Int64{}, &atomic.Bool{}}
	e.clock.reached.Store(time.Now().UnixNano())
	e.log.began = time.Now()
	backend := newClientAdapter(e)
	e.client = client.New(backend, append(o.clientOptions(), client.WithClock(e.Now))...)
	e.admin = admin.New(backend, append(o.adminOptions(), admin.WithClock(e.Now))...)
}

// do runs f in the bubble and waits for it. If the caller is in the bubble, such as an activity, do calls f directly.
func (e *Env) do(f func()) {
	e.t.Helper()
	if e.deployed != nil || e.watchdog.isInside() {
		f()
		return
	}
	if t := e.network.ticket(); t != nil {
		t.do(f)
		return
	}
	e.watchdog.offer(f, e.network.calls) // for example, from a server that an activity of WithNetwork calls
}

// drive is like do for a function that moves the clock. Activities must not call it.
func (e *Env) drive(f func()) {
	e.t.Helper()
	if e.deployed != nil || e.watchdog.isInside() {
		f()
		return
	}
	e.watchdog.offer(f, nil)
}

// offer runs f in the bubble, or on the receiver of others, and waits for it.
func (w *watchdog) offer(f func(), others chan<- func()) {
	done := make(chan struct{})
	work := func() {
		defer close(done)
		f()
	}
	select {
	case w.env.work <- work:
		w.await(done)
		return
	case others <- work:
	case <-w.env.closing:
	}
	select {
	case <-done:
	case <-w.env.closing:
		w.stop()
	}
}

// outside panics if an activity or orchestration makes a call that moves the clock.
func (e *Env) outside(what string) {
	if e.watchdog.isInside() || e.network.isBusy() {
		panic(fmt.Sprintf("perduretest: %s must be called from the test's goroutine, not from an activity or "+
			"orchestration", what))
	}
}

// errorf fails the test, unless the bubble was abandoned.
func (e *Env) errorf(format string, args ...any) {
	if !e.abandoned.Load() {
		e.t.Helper()
		e.t.Errorf(format, args...)
	}
}

// Client returns the client of the hub. Its waits advance the clock until the instance has ended, and fail with an
// *IdleError if nothing can end the instance. In an activity, virtual time passes while the Client waits.
//
// The deadline of a context that was created outside of an activity, such as the context of the test, is in real time.
// Its end stops a wait (Wait, WaitForStart, Update, StartOrUpdate, CallEntity) but no other call, and Advance does not
// affect its deadline. The context of an activity uses virtual time.
func (e *Env) Client() *client.Client { return e.client }

// Admin returns a client that operates the hub. Contexts have the same meaning as for Client. Reconcile, PurgeQueues
// and dead letters are not supported in virtual time.
func (e *Env) Admin() *admin.Client {
	e.t.Helper()
	if e.admin == nil {
		e.t.Fatal("perduretest: Admin: the hub of NewDeployed is not an admin.Backend")
	}
	return e.admin
}

// endTimeout is the virtual time that running code has to end after the end of a test.
const endTimeout = 24 * time.Hour

// end ends the Env with its test.
func (e *Env) end() {
	if e.abandoned.Load() {
		return
	}
	e.close()
	e.watchdog.await(e.ended)
	if !e.abandoned.Load() {
		logUnusedStubs(e)
		e.faults.checkExpected()
	}
}

// unwind ends the hub. All goroutines of the bubble must have ended when serve returns.
func (e *Env) unwind() {
	e.unwinding.Store(true)
	e.hub.Close()
	synctest.Wait()
	busy := func() bool {
		return e.hub.Cloud.InFlight() > 0 || e.hub.Sweeper.IsRunning() || len(e.log.running()) > 0
	} // an abandoned activity may still run
	if !busy() {
		return
	}
	time.Sleep(endTimeout)
	synctest.Wait()
	if busy() {
		e.faults.failf(GoroutineLeak, "unfinished", "still running after the test, %v after the end of its context:%s",
			endTimeout, e.watchdog.unfinished())
	}
}
