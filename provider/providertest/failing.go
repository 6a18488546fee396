package providertest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/provider"
)

// Failed calls are retried, or returned with the operation's name and whether the call can be repeated.
func errorHandling() group {
	faults := []Capability{Faults}
	return group{"errors", []testCase{
		{name: "AThrottledCallIsRepeated", run: throttled, needs: faults},
		{name: "ARefusedCallNamesItsOperation", run: refusedCalls, needs: faults},
		{name: "AnEndlesslyThrottledCallIsRetryable", run: throttledForGood, needs: faults},
		{name: "ErrorsNameTheInstance", run: errorsNameTheInstance, needs: faults},
		{name: "NothingIsDoneForACallerWhoIsGone", run: contextEnded},
		{name: "ACallEndsWithItsContext", run: contextEndsMeanwhile, needs: []Capability{Faults, VirtualTime}},
	}}
}

// wantPermanent fails unless err is an *Error with an operation and is not retryable.
func (f *fixture) wantPermanent(err error) {
	f.t.Helper()
	if e, ok := errors.AsType[*provider.Error](err); !ok || e.Retryable || e.Op == "" {
		f.t.Errorf("error %v, want a permanent *provider.Error", err)
	}
}

// action is a call of the provider and a kind of backend call that it requires.
type action struct {
	on Operation
	do func(ctx context.Context) error
}

// actions returns calls of every method, on an instance with a turn and one without.
func (f *fixture) actions() map[string]action {
	f.t.Helper()
	old := f.quiet("old one")
	old.commit(turnStarted(), activity(Queue))
	running, fresh := f.quiet("r"), f.quiet("fresh")
	running.commit(turnStarted(), activity(Queue), activity(Queue), timer(f.now()))
	held := f.locked(Queue)
	if len(held) != 3 {
		f.t.Fatalf("%d work items, want 3", len(held))
	}
	o, item := running.read(), running.item()
	return map[string]action{
		"StartOrchestration":     {Write, func(ctx context.Context) error { return second(f.p.StartOrchestration(ctx, startOf("next"))) }},
		"EnqueueForOrchestrator": {Send, func(ctx context.Context) error { return f.p.EnqueueForOrchestrator(ctx, fired("r", 9)) }},
		"ReadInstance":           {Read, func(ctx context.Context) error { return second(f.p.ReadInstance(ctx, "r")) }},
		"ReadTerminalEvent": {Read, func(ctx context.Context) error {
			return unless(provider.ErrNotFound, second(f.p.ReadTerminalEvent(ctx, o.Head.ExecutionID)))
		}},
		"ReadHistory": {Read, func(ctx context.Context) error {
			return last(f.p.ReadHistory(ctx, o.InstanceID, o.Head.ExecutionID, 0))
		}},
		"ListInstances": {Read, func(ctx context.Context) error { return second(f.p.ListInstances(ctx, provider.ListQuery{})) }},
		"PutBuild": {Update, func(ctx context.Context) error {
			return f.p.PutBuild(ctx, provider.Build{ID: "b", Orchestrations: map[string][]string{order: nil}})
		}},
		"ReadBuild": {Read, func(ctx context.Context) error {
			return unless(provider.ErrNotFound, second(f.p.ReadBuild(ctx, "b")))
		}},
		"RejectEvents":       {Read, func(ctx context.Context) error { return f.p.RejectEvents(ctx, "", eventMessage("nobody", "px", 3)) }},
		"ReadRejectedEvents": {Read, func(ctx context.Context) error { return second(f.p.ReadRejectedEvents(ctx, "c")) }},
		"ReadInterruption":   {Read, func(ctx context.Context) error { return second(f.p.ReadInterruption(ctx, "c")) }},
		"ReadOrchestration":  {Read, func(ctx context.Context) error { return second(f.p.ReadOrchestration(ctx, item, provider.Strong)) }},
		"AckOrchestrationItem": {Write, func(ctx context.Context) error {
			return second(f.p.AckOrchestrationItem(ctx, fresh.turn(turnStarted())))
		}},
		"RedispatchOrchestration": {Send, func(ctx context.Context) error { return second(f.p.RedispatchOrchestration(ctx, o, since(at(1)))) }},
		"AckWorkItems": {Send, func(ctx context.Context) error {
			return second(f.p.AckWorkItems(ctx, Queue, done(held[:1], smallResult)))
		}},
		"PutActivityRecords": {Update, func(ctx context.Context) error {
			return f.p.PutActivityRecords(ctx, o.Head.ExecutionID, beat(3, f.now(), `1`))
		}},
		"ReadActivityRecord": {Read, func(ctx context.Context) error {
			return second(f.p.ReadActivityRecord(ctx, o.Head.ExecutionID, 3))
		}},
		"ReadActivityRecords": {Read, func(ctx context.Context) error {
			return last(f.p.ReadActivityRecords(ctx, o.Head.ExecutionID))
		}},
		"ReportWorker":     {Update, func(ctx context.Context) error { return f.p.ReportWorker(ctx, provider.WorkerReport{Queue: Queue}) }},
		"ReadWorkers":      {Read, func(ctx context.Context) error { return second(f.p.ReadWorkers(ctx)) }},
		"HoldTimers":       {Send, func(ctx context.Context) error { return f.p.HoldTimers(ctx, timerDue(9, f.now())) }},
		"PendingInstances": {Read, func(ctx context.Context) error { return last(f.p.PendingInstances(ctx, f.Now())) }},
		"CountAttention":   {Read, func(ctx context.Context) error { return second(f.p.CountAttention(ctx)) }},
		"DeadLetter": {Send, func(ctx context.Context) error {
			return f.p.DeadLetter(ctx, Queue, provider.Unreadable{Record: record(1, "x"), Err: errors.New("bad")})
		}},
		"AbandonRecords": {Delay, func(ctx context.Context) error { return f.p.AbandonRecords(ctx, Queue, time.Second, held[1].Record) }},
		"DeleteRecords":  {Delete, func(ctx context.Context) error { return f.p.DeleteRecords(ctx, Queue, held[2].Record) }},
	}
}

func second[T any](_ T, err error) error { return err }

func unless(expected, err error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}

// last returns the error that ends a sequence.
func last[T any](seq func(yield func(T, error) bool)) (last error) {
	seq(func(_ T, err error) bool {
		last = err
		return true
	})
	return last
}

// each calls every action in the order of the names.
func each(actions map[string]action, do func(name string, a action)) {
	for _, name := range slices.Sorted(maps.Keys(actions)) {
		do(name, actions[name])
	}
}

func throttled(f *fixture) {
	each(f.actions(), func(name string, a action) {
		hits := f.Fail(Fault{Operation: a.on, Failure: Throttled, Times: 2})
		if err := a.do(f.ctx()); err != nil {
			f.t.Errorf("%s: %v", name, err)
		}
		if hits() != 2 {
			f.t.Errorf("%s: %d calls were throttled, want 2", name, hits())
		}
	})
}

func refusedCalls(f *fixture) {
	each(f.actions(), func(name string, a action) {
		hits := f.Fail(Fault{Operation: a.on, Failure: Rejected, Times: 1})
		err := a.do(f.ctx())
		if e, ok := errors.AsType[*provider.Error](err); !ok || e.Retryable || e.Op == "" || !strings.Contains(err.Error(), e.Op) {
			f.t.Errorf("%s: error %v, want a permanent *provider.Error", name, err)
		}
		if hits() != 1 {
			f.t.Errorf("%s: %d calls were rejected, want 1", name, hits())
		}
	})
}

func throttledForGood(f *fixture) {
	each(f.actions(), func(name string, a action) {
		hits := f.Fail(Fault{Operation: a.on, Failure: Throttled, Times: 1000})
		err := a.do(f.ctx())
		if e, ok := errors.AsType[*provider.Error](err); !ok || !e.Retryable || e.Op == "" {
			f.t.Errorf("%s: error %v, want a retryable *provider.Error", name, err)
		}
		if n := hits(); n < 2 || n == 1000 {
			f.t.Errorf("%s: %d tries", name, n)
		}
		f.Fail(Fault{}) // no more
	})
}

func errorsNameTheInstance(f *fixture) {
	actions := f.actions()
	for name, id := range map[string]string{
		"StartOrchestration": "next", "ReadInstance": "r", "ReadOrchestration": "r", "AckOrchestrationItem": "fresh",
	} {
		f.Fail(Fault{Operation: actions[name].on, Failure: Rejected, Times: 1})
		err := actions[name].do(f.ctx())
		if e, ok := errors.AsType[*provider.Error](err); !ok || e.InstanceID != id {
			f.t.Errorf("%s: error %v, want one of instance %q", name, err, id)
		}
	}
}

func contextEnded(f *fixture) {
	actions := f.actions()
	ctx, cancel := context.WithCancel(f.ctx())
	cancel()
	each(actions, func(name string, a action) {
		if err := a.do(ctx); !errors.Is(err, context.Canceled) {
			f.t.Errorf("%s: error %v, want %v", name, err, context.Canceled)
		}
	})
	_, err := f.p.ReadInstance(f.ctx(), "next")
	f.wantIs(err, provider.ErrNotFound)
	f.wantStatus("fresh", provider.StatusPending)
}

// contextEndsMeanwhile: a call that is being repeated ends soon after its context.
func contextEndsMeanwhile(f *fixture) {
	each(f.actions(), func(name string, a action) {
		f.Fail(Fault{Operation: a.on, Failure: Throttled, Times: 1000})
		ctx, cancel := context.WithTimeout(f.ctx(), 15*time.Millisecond)
		began := f.Now()
		err := a.do(ctx)
		cancel()
		if took := f.Now().Sub(began); err == nil || took > 100*time.Millisecond {
			f.t.Errorf("%s: error %v after %v", name, err, took)
		}
		f.Fail(Fault{}) // no more
	})
}
