package perduretest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/payloadjson"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/schedule"
)

// Stub replaces an activity. Its methods add steps to a script, and each run of the activity takes one step:
//
//	env.Stub("charge").Fails(2, errDeclined).Returns(receipt) // fails twice, then always returns the receipt
//	env.Stub("quote").Returns(10, 12)                         // returns 10, then always 12
//	env.Stub("pack").Takes(6 * time.Hour).Returns(nil)
//
// The last step is repeated if it is Returns or StubFunc. If the script ends with Fails, later runs use the code of the
// activity. If the activity is not registered, the test fails. For an activity that always fails, use a large n or
// StubFunc. Takes applies to every run. Each attempt of a retry policy is a run. Env.Calls lists the runs with their
// inputs.
type Stub struct {
	env  *Env
	name string
	opts []perdure.ActivityOption

	own *registry.Activity // nil if the activity is not registered

	mu     sync.Mutex
	script []step
	next   int
	takes  time.Duration
}

// step is one run of a script. Only the last step can repeat.
type step struct {
	value   any
	err     error
	run     activityCode
	repeats bool
}

// activityCode is the code of an activity in a registry.
type activityCode = func(context.Context, json.RawMessage) (json.RawMessage, *history.Failure)

// Stub returns the stub of an activity. From now on, the stub replaces the activity. The activity does not have to be
// registered. If it is not registered and uses another queue than perdure.DefaultQueue, pass perdure.OnQueue. A stub of
// an unregistered activity that is never called is logged at the end of the test, because its name may be misspelled.
func (e *Env) Stub(activity string, opts ...perdure.ActivityOption) *Stub {
	e.t.Helper()
	e.deployed.reject(e.t, "Stub")
	var s *Stub
	e.do(func() { s = e.stubs.stub(e, activity, opts) })
	return s
}

// StubFunc runs fn in place of an activity, as the next step of the activity's stub. The step is repeated. fn must have
// the types of the activity.
func StubFunc[In, Out any](
	env *Env, activity string, fn func(context.Context, In) (Out, error), opts ...perdure.ActivityOption,
) *Stub {
	env.t.Helper()
	s := env.Stub(activity, opts...)
	s.add(step{run: newActivity(activity, fn).Run, repeats: true})
	return s
}

// newActivity returns the registered form of an activity.
func newActivity[In, Out any](
	name string, fn func(context.Context, In) (Out, error), opts ...perdure.ActivityOption,
) registry.Activity {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, name, fn, opts...)
	a, _ := (*registry.Registry)(r).Activity(name)
	return a
}

// Returns adds a step for each value, which returns the value. Without values it adds a step that returns null. Returns
// fails the test if a value does not match the result type of the registered activity.
func (s *Stub) Returns(values ...any) *Stub {
	s.env.t.Helper()
	if len(values) == 0 {
		values = []any{nil}
	}
	for _, v := range values {
		doc, err := payloadjson.Marshal(v)
		if err == nil && s.own != nil && s.own.Out != nil {
			err = fits(doc, s.own.Out)
		}
		if err != nil {
			s.env.t.Fatalf("perduretest: stub of activity %q cannot return %v: %v", s.name, v, err)
		}
		s.add(step{value: json.RawMessage(doc), repeats: true})
	}
	return s
}

// fits returns an error if a document cannot be decoded into a value of type t.
func fits(doc []byte, t reflect.Type) error {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.DisallowUnknownFields()
	if err := d.Decode(reflect.New(t).Interface()); err != nil {
		return fmt.Errorf("the result type is %v: %w", t, err)
	}
	return nil
}

// Fails adds n steps that fail with err, which must not be nil.
func (s *Stub) Fails(n int, err error) *Stub {
	s.env.t.Helper()
	if err == nil {
		s.env.t.Fatalf("perduretest: stub of activity %q: Fails requires an error", s.name)
	}
	for range n {
		s.add(step{err: err})
	}
	return s
}

// Takes makes every run of the stub take d of virtual time. If the context of a run ends earlier, the run fails with
// the cause of the context. An hour takes about a second of real time. A run of more than 12 hours never completes,
// because SQS redelivers its record. Model longer work as an orchestration that waits for a timer.
func (s *Stub) Takes(d time.Duration) *Stub {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takes = d
	return s
}

func (s *Stub) add(one step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append(s.script, one)
}

// errNoScript is the failure of a run without a step.
var errNoScript = errors.New("perduretest: stub has no more steps")

// take returns the step of the next run.
func (s *Stub) take() (step, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next < len(s.script) {
		s.next++
		return s.script[s.next-1], s.takes
	}
	if n := len(s.script); n > 0 && s.script[n-1].repeats {
		return s.script[n-1], s.takes
	}
	if s.own != nil {
		return step{run: s.own.Run}, s.takes
	}
	return step{}, s.takes
}

// activity runs the stub as an activity.
func (s *Stub) activity(ctx context.Context, input json.RawMessage) (json.RawMessage, *history.Failure) {
	one, takes := s.take()
	if takes > 0 {
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			one = step{err: context.Cause(ctx)}
		}
	}
	switch {
	case one.run != nil:
		return one.run(ctx, input)
	case one.value == nil && one.err == nil:
		s.env.errorf("perduretest: stub of activity %q has no more steps for the call of instance %q; end its script "+
			"with Returns",
			s.name, perdure.ActivityInfoFrom(ctx).InstanceID)
		one.err = perdure.NonRetryable(errNoScript)
	}
	outcome := func(context.Context, json.RawMessage) (any, error) { return one.value, one.err }
	return newActivity(s.name, outcome).Run(ctx, input)
}

// stubs are the stubs of an Env. They are safe for concurrent use.
type stubs struct {
	code *registry.Registry           // the running code, which is the registered code with its stubs
	own  map[string]registry.Activity // registered activities, used only by the goroutine of the bubble

	mu sync.Mutex
	by map[string]*Stub
}

func (s *stubs) of(name string) *Stub {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by[name]
}

// stub returns the stub of an activity. It creates and registers a missing stub. Call it in the bubble.
func (s *stubs) stub(e *Env, name string, opts []perdure.ActivityOption) *Stub {
	if made := s.of(name); made != nil {
		return made
	}
	made := &Stub{env: e, name: name, opts: opts}
	if own, ok := s.own[name]; ok {
		made.own = &own
	} else {
		s.register(e, name, opts)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.by[name] = made
	return made
}

// logUnusedStubs logs stubs of unregistered activities that were not called after the Env has ended. Their names may be
// misspelled.
func logUnusedStubs(e *Env) {
	for _, name := range slices.Sorted(maps.Keys(e.stubs.by)) {
		if _, registered := e.stubs.own[name]; !registered && len(e.log.list(time.Time{}, []string{name})) == 0 {
			e.t.Logf("perduretest: stub of activity %q was never called, and the activity is not registered; the "+
				"registry has %s",
				name, quoted(slices.Sorted(maps.Keys(e.stubs.own))))
		}
	}
}

// wrapped returns an activity that records its calls and runs its stub, if it has one.
func (s *stubs) wrapped(e *Env, a registry.Activity) registry.Activity {
	own := a
	a.Run = func(ctx context.Context, input json.RawMessage) (out json.RawMessage, f *history.Failure) {
		c := e.log.begin(ctx, own.Name, input)
		ended := false
		defer func() {
			if !ended { // the code called runtime.Goexit
				f = &history.Failure{Message: errEnded.Error()}
			}
			e.log.end(c, out, f)
		}()
		run := own.Run
		switch stub := s.of(own.Name); {
		case stub != nil:
			run = stub.activity
		case e.network.concerns(own.Name):
			run = func(ctx context.Context, input json.RawMessage) (json.RawMessage, *history.Failure) {
				return e.network.run(ctx, own.Run, input)
			}
		}
		out, f = run(ctx, input)
		ended = true
		return out, f
	}
	return a
}

// register adds a stub of an unregistered activity to the running code.
func (s *stubs) register(e *Env, name string, opts []perdure.ActivityOption) {
	noScript := func(context.Context, json.RawMessage) (any, error) { return nil, errNoScript }
	a := newActivity(name, noScript, opts...)
	synctest.Wait() // nothing reads the registry now
	s.code.AddActivity(s.wrapped(e, a), func() {})
	if err := e.hub.AddQueue(a.Queue); err != nil {
		e.errorf("perduretest: queue of the stub of activity %q: %v", name, err)
	}
}

// registryFor returns the registry that the hub runs. It contains the same orchestrations, and wrapped activities.
func (s *stubs) registryFor(e *Env, r *perdure.Registry) *perdure.Registry {
	s.own = map[string]registry.Activity{}
	if s.by == nil {
		s.by = map[string]*Stub{}
	}
	s.code = (*registry.Registry)(r).WithActivities(func(a registry.Activity) registry.Activity {
		s.own[a.Name] = a
		return s.wrapped(e, a)
	})
	s.registerAgain(e)
	code := (*perdure.Registry)(s.code)
	schedule.Register(code) // as lambdahandler does
	return code
}

// registerAgain adds the stubs to the code of another build.
func (s *stubs) registerAgain(e *Env) {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.by))
	s.mu.Unlock()
	for _, stub := range all {
		own, registered := s.own[stub.name]
		stub.mu.Lock()
		stub.own = nil
		if registered {
			stub.own = &own
		}
		stub.mu.Unlock()
		if !registered {
			s.register(e, stub.name, stub.opts)
		}
	}
}

// takes returns the duration of the stub of an activity.
func (s *stubs) takes(name string) time.Duration {
	stub := s.of(name)
	if stub == nil {
		return 0
	}
	stub.mu.Lock()
	defer stub.mu.Unlock()
	return stub.takes
}
