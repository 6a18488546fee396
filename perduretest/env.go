package perduretest

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simhub"
)

// Env is a task hub in a test. Its methods and its Client must be used by one goroutine at a time, normally the test's.
// Two exceptions may use the Client too: an activity with its own context, and a server of the test that an activity of
// WithNetwork calls.
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
	faults   sync.Map // what the test has failed for, by name
	builds   int      // how many were deployed after the first

	// work goes to the goroutine that lives in the bubble. The channel is made outside of it, so that waiting for work holds virtual time still.
	work chan func()
	// born is closed when there is a bubble, over when it has ended, and gone, by leave, when nothing is to be done in it any more.
	born, over, gone chan struct{}
	leave            func()
	watch            watch
	trouble          simhub.Trouble
	network          *network
	deployed         *deployedHub // nil in virtual time
	// leaving: the test is over, and activities are told to end. given up: code hangs, and the bubble is left behind.
	leaving, givenUp atomic.Bool
}

// New returns an Env that runs the code of r. The Env ends with the test, which cancels the contexts of activities that
// are still running.
//
// Every turn replays its history from the beginning, so that an orchestration that depends on randomness, on map order
// or on the clock fails the test. WithCache keeps instances warm instead, like a deployed hub. The test also fails if
// code hangs: an orchestration or activity that blocks forever or never ends, or an activity that ignores its cancelled
// context.
func New(t *testing.T, r *perdure.Registry, opts ...Option) *Env {
	t.Helper()
	if thisGoroutine().bubble != "" {
		t.Fatal("perduretest: New: an Env has its own virtual time; call New outside of synctest.Test")
	}
	if r == nil {
		t.Fatal("perduretest: New: registry is nil")
	}
	e := &Env{t: t, work: make(chan func()), born: make(chan struct{}), over: make(chan struct{}), gone: make(chan struct{})}
	o := options{patience: defaultPatience, Options: simhub.Options{
		Registry: e.stubs.standIn(e, r), BatchSize: 1, Ordered: true, Sweep: true, // one at a time: so the order is the same in every run
		CacheBytes:    -1,
		Reports:       true,
		Exclusive:     true, // what a stack without the queues says is no concern of code that is tested
		SendAnewAfter: -1,   // no later build will know an activity that r does not: it is given up, and the hub comes to rest
	}}
	for _, opt := range opts {
		opt.apply(&o)
	}
	e.leave = sync.OnceFunc(func() { close(e.gone) })
	e.watch = watch{env: e, patience: o.patience}
	e.network = newNetwork(&o)
	o.Intercept = e.trouble.Intercept
	o.Interceptors = append(o.Interceptors, e.progress.interceptor())
	log := slog.DiscardHandler
	if o.Logger != nil {
		log = o.Logger.Handler()
	}
	o.Logger = slog.New(vigilant{Handler: log, env: e})
	go e.network.issue(e.over)
	go e.inhabit(&o)
	t.Cleanup(e.end)
	select {
	case <-e.born:
	case <-e.over:
	}
	if e.hub == nil {
		t.FailNow()
	}
	return e
}

// inhabit runs the bubble. Goroutines that never end are no reason to take the whole test binary down.
func (e *Env) inhabit(o *options) {
	defer close(e.over)
	defer func() {
		if r := recover(); r != nil && !e.t.Failed() {
			e.errorf("perduretest: goroutines are still running after the test: %v%s",
				r, describeAll(e.watch.ofUsers()))
		}
	}()
	synctest.Test(e.t, func(*testing.T) { e.live(o) })
}

// live is the bubble's own goroutine: it makes the hub and runs what it is given.
func (e *Env) live(o *options) {
	e.make(o)
	if o.crash.at > 0 {
		e.trouble.CrashAt(o.crash.at, o.crash.after)
	}
	close(e.born)
	for left := false; !left; {
		select {
		case f := <-e.work:
			f()
		case <-e.gone:
			left = true
		}
	}
	if e.hub != nil {
		e.unwind()
	}
}

// make makes the hub.
func (e *Env) make(o *options) {
	e.watch.bubble = thisGoroutine().bubble
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
	b := &bubble{holders{visitor{hub.Provider, e}}}
	e.client = client.New(b, append(o.clientOptions(), client.WithClock(e.Now))...)
	e.admin = admin.New(b, append(o.adminOptions(), admin.WithClock(e.Now))...)
}

// do runs f in the bubble, and waits for it. What runs in the bubble already, such as an activity, runs it itself.
func (e *Env) do(f func()) {
	e.t.Helper()
	if e.deployed != nil || e.isInside() {
		f()
		return
	}
	if t := e.network.ticket(); t != nil {
		t.do(f)
		return
	}
	e.watch.offer(f, e.network.calls) // by a server, say, that an activity of WithNetwork has called
}

// drive runs f on the bubble's own goroutine: what moves its clock is no business of an activity's.
func (e *Env) drive(f func()) {
	e.t.Helper()
	if e.deployed != nil || e.isInside() {
		f()
		return
	}
	e.watch.offer(f, nil)
}

// offer has f run by the bubble, or by who takes others' calls, and waits for it.
func (w *watch) offer(f func(), others chan<- func()) {
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
	case <-w.env.gone:
	}
	select {
	case <-done:
	case <-w.env.gone:
		w.stop()
	}
}

// processStart is before all times outside of bubbles, whose clocks begin with the year 2000.
var processStart = time.Now()

// isInside reports whether the calling goroutine is of the bubble.
func (e *Env) isInside() bool {
	if time.Now().Before(processStart) {
		return true
	}
	if !e.clock.isPast(processStart) {
		return false
	}
	g := thisGoroutine() // slow: virtual time is in the future
	return g.bubble != "" && g.bubble == e.watch.bubble
}

// outside fails what moves the clock from within.
func (e *Env) outside(what string) {
	if e.isInside() || e.network.isBusy() {
		panic(fmt.Sprintf("perduretest: %s must be called from the test's goroutine, not from an activity or "+
			"orchestration", what))
	}
}

// errorf fails the test, unless it is over.
func (e *Env) errorf(format string, args ...any) {
	if !e.givenUp.Load() {
		e.t.Helper()
		e.t.Errorf(format, args...)
	}
}

// Client returns the client of the hub. Its waits advance the clock until the instance has ended, and fail with an
// *IdleError if nothing can end the instance. In an activity, a wait of the Client takes virtual time.
//
// A context that does not use virtual time, such as the test's own, uses real time. Its end stops a wait (Wait,
// WaitForStart, Update, StartOrUpdate, CallEntity) but no other call, and Advance does not reach its deadline. The
// context of an activity uses virtual time.
func (e *Env) Client() *client.Client { return e.client }

// Admin returns a client that operates the hub. Contexts have the same meaning as for Client. Reconcile, PurgeQueues and
// dead letters are not supported in virtual time.
func (e *Env) Admin() *admin.Client {
	e.t.Helper()
	if e.admin == nil {
		e.t.Fatal("perduretest: Admin: the hub of NewDeployed is not an admin.Backend")
	}
	return e.admin
}

// patience is how much virtual time what is still running gets to end once the test is over.
const patience = 24 * time.Hour

// end ends the Env with its test.
func (e *Env) end() {
	if e.givenUp.Load() {
		return
	}
	e.leave()
	e.watch.await(e.over)
	if !e.givenUp.Load() {
		logUnused(e)
	}
}

// unwind ends the hub: all goroutines of the bubble must be gone when its own returns.
func (e *Env) unwind() {
	e.leaving.Store(true)
	e.hub.Close()
	synctest.Wait()
	busy := func() bool {
		return e.hub.Cloud.InFlight() > 0 || e.hub.Sweeper.IsRunning() || len(e.log.running()) > 0
	} // the latter also where it was given up
	if !busy() {
		return
	}
	time.Sleep(patience)
	synctest.Wait()
	if busy() {
		e.errorf("perduretest: still running after the test, %v after the end of its context:%s",
			patience, e.watch.unfinished())
	}
}
