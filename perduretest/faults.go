package perduretest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/perdure/perdure/internal/faults"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/internal/replay/stack"
	"github.com/perdure/perdure/perduretest/internal/goroutines"
)

// Fault is a kind of fault in the code under test. Every fault fails the test, unless the test expects it (Env.Expect)
// or disables its check (WithoutFaultCheck).
type Fault string

// The faults that an Env detects.
const (
	// Nondeterminism means that the decisions of an orchestration differ from its history, for example because the code
	// depends on the clock or on map order. It does not fail the test after Env.Deploy.
	Nondeterminism = Fault(faults.Nondeterminism)
	// Hang means that an orchestration did not return to the engine for 10 seconds of virtual time, because it blocks
	// on something other than a future. Code that stops virtual time, such as an endless loop, ends the test instead.
	Hang = Fault(faults.Hang)
	// ForeignGoroutine means that an orchestration used its context or a future on another goroutine.
	ForeignGoroutine = Fault(faults.ForeignGoroutine)
	// GoroutineLeak means that an activity did not return within 10 seconds after the end of its context, or that code
	// was still running after the test.
	GoroutineLeak = Fault(faults.GoroutineLeak)
)

// allFaults are the valid values of Fault.
var allFaults = []Fault{Nondeterminism, Hang, ForeignGoroutine, GoroutineLeak}

// Expect makes the test require faults instead of failing because of them. Call it before the faulty code runs. Each
// kind may happen several times. The test fails at its end if one of the faults has not happened.
//
//	env.Expect(perduretest.Nondeterminism)
//	status, err := env.Client().Wait(t.Context(), id) // an *IdleError: the instance is blocked
func (e *Env) Expect(kinds ...Fault) {
	e.t.Helper()
	e.deployed.reject(e.t, "Expect")
	if err := checkFaults(kinds); err != nil {
		e.t.Fatalf("perduretest: Expect: %v", err)
	}
	e.faults.expect(kinds)
}

// WithoutFaultCheck disables the checks for faults. Unlike Env.Expect, it does not require the faults to happen.
func WithoutFaultCheck(kinds ...Fault) Option {
	return option(func(o *options) { o.unchecked = append(o.unchecked, kinds...) })
}

// checkFaults returns an error if a kind is unknown.
func checkFaults(kinds []Fault) error {
	for _, kind := range kinds {
		if !slices.Contains(allFaults, kind) {
			return fmt.Errorf("unknown fault %q; want one of %q", kind, allFaults)
		}
	}
	return nil
}

// faultChecks records the faults of an Env and fails its test. It is safe for concurrent use.
type faultChecks struct {
	env *Env

	mu        sync.Mutex
	unchecked []Fault
	expected  []Fault
	happened  map[Fault]bool
	reported  map[string]bool // keys of the faults that failed the test
}

// ignore disables the checks for faults.
func (c *faultChecks) ignore(kinds []Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unchecked = append(c.unchecked, kinds...)
}

// expect makes faults required.
func (c *faultChecks) expect(kinds []Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expected = append(c.expected, kinds...)
}

// record records a fault. It returns true if the fault must fail the test, at most once for each key.
func (c *faultChecks) record(kind Fault, key string) (fails bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.happened == nil {
		c.happened, c.reported = map[Fault]bool{}, map[string]bool{}
	}
	c.happened[kind] = true
	if c.isIgnored(kind) || c.reported[key] {
		return false
	}
	c.reported[key] = true
	return true
}

// isIgnored reports whether faults of a kind do not fail the test. The caller must hold mu.
func (c *faultChecks) isIgnored(kind Fault) bool {
	return slices.Contains(c.unchecked, kind) || slices.Contains(c.expected, kind)
}

// wasIgnored reports whether one of the kinds has happened without failing the test.
func (c *faultChecks) wasIgnored(kinds ...Fault) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(kinds, func(kind Fault) bool { return c.happened[kind] && c.isIgnored(kind) })
}

// missing returns the expected kinds that have not happened.
func (c *faultChecks) missing() []Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	missing := map[Fault]bool{}
	for _, kind := range c.expected {
		if !c.happened[kind] {
			missing[kind] = true
		}
	}
	return slices.Sorted(maps.Keys(missing))
}

// observe records a fault that the engine reports.
func (c *faultChecks) observe(f faults.Event) {
	if f.Kind == faults.GoroutineLeak {
		c.observeLeak(&f)
		return
	}
	key := string(f.Kind) + " " + f.InstanceID
	if foreign, ok := errors.AsType[*replay.ForeignGoroutineError](f.Err); ok {
		lost := ""
		if foreign.Late {
			lost = " after its turn had ended, so that its calls are lost"
		}
		c.failf(ForeignGoroutine, key, "instance %q: orchestration context or future used on another goroutine%s, "+
			"in %s", f.InstanceID, lost, stack.Where(foreign.Stack))
		return
	}
	if hang, ok := errors.AsType[*replay.BlockedOutsideError](f.Err); ok {
		c.failf(Hang, key, "instance %q: orchestration hangs: it blocks on something other than a future or never "+
			"ends, in %s", f.InstanceID, stack.Where(hang.Stack))
		return
	}
	c.failf(Fault(f.Kind), key, "%v", f.Err)
}

// observeLeak records an activity that the engine has abandoned. At the end of the test, unwind does this check
// instead.
func (c *faultChecks) observeLeak(f *faults.Event) {
	if c.env.unwinding.Load() {
		return
	}
	for _, call := range c.env.log.running() {
		if call.InstanceID == f.InstanceID && call.ActivityID == f.ActivityID {
			c.failf(GoroutineLeak, fmt.Sprintf("%s %s %d", f.Kind, f.InstanceID, f.ActivityID),
				"activity %q of instance %q ignores its cancelled context, in %s",
				f.Activity, f.InstanceID, c.env.watchdog.userCodeOf(call.goroutine))
			return
		}
	}
}

// failf records a fault and fails the test, unless the fault is excused. Faults with the same key fail the test once.
func (c *faultChecks) failf(kind Fault, key, format string, args ...any) {
	if c.record(kind, key) {
		c.env.errorf("perduretest: "+format, args...)
	}
}

// checkLeft reports the goroutines that still run when the bubble ends with the panic r.
func (c *faultChecks) checkLeft(r any) {
	left := c.env.watchdog.ofUsers()
	if c.wasIgnored(Hang, ForeignGoroutine) {
		all := len(left)
		left = slices.DeleteFunc(left, goroutines.Goroutine.IsOrchestration)
		if len(left) == 0 && all > 0 {
			return
		}
	}
	c.failf(GoroutineLeak, "left", "goroutines are still running after the test: %v%s", r, goroutines.DescribeAll(left))
}

// checkExpected fails the test if an expected fault has not happened.
func (c *faultChecks) checkExpected() {
	if missing := c.missing(); len(missing) > 0 && !c.env.t.Failed() && !c.env.t.Skipped() {
		c.env.errorf("perduretest: expected faults did not happen: %q", missing)
	}
}
