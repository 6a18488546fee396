package turns

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// ErrorHandling tests that failed calls are retried, or return an error with the operation and Retryable.
func ErrorHandling() kit.Group {
	faults := []kit.Capability{kit.Faults}
	return kit.Group{Name: "errors", Cases: []kit.Case{
		{Name: "ThrottledCallIsRetried", Run: throttled, Needs: faults},
		{Name: "RejectedCallNamesItsOperation", Run: refusedCalls, Needs: faults},
		{Name: "EndlesslyThrottledCallIsRetryable", Run: throttledForGood, Needs: faults},
		{Name: "ErrorsNameTheInstance", Run: errorsNameTheInstance, Needs: faults},
		{Name: "CancelledCallMakesNoRequest", Run: contextEnded},
		{
			Name: "CallEndsWithItsContext", Run: contextEndsMeanwhile,
			Needs: []kit.Capability{kit.Faults, kit.VirtualTime},
		},
	}}
}

// action is a call of the provider and a kind of backend call that it requires.
type action struct {
	on kit.Operation
	do func(ctx context.Context) error
}

// actions returns calls of every method, on an instance with a turn and an instance without a turn.
func actions(f *kit.Fixture) map[string]action {
	f.T.Helper()
	old := f.StartWithoutWake("old one")
	old.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	running, fresh := f.StartWithoutWake("r"), f.StartWithoutWake("fresh")
	running.Commit(kit.TurnStarted(), kit.Activity(kit.Queue), kit.Activity(kit.Queue), kit.Timer(f.StoredNow()))
	held := f.Locked(kit.Queue)
	if len(held) != 3 {
		f.T.Fatalf("got %d work items, want 3", len(held))
	}
	o := running.Read()
	all := map[string]action{
		"StartOrchestration": {kit.Write, func(ctx context.Context) error {
			return kit.ErrOf(f.Provider.StartOrchestration(ctx, kit.StartOf("next")))
		}},
		"EnqueueForOrchestrator": {kit.Send, func(ctx context.Context) error {
			return f.Provider.EnqueueForOrchestrator(ctx, kit.Fired("r", 9))
		}},
		"PutBuild": {kit.Update, func(ctx context.Context) error {
			return f.Provider.PutBuild(ctx, provider.Build{
				ID: "b", Orchestrations: map[string][]string{kit.Order: nil},
			})
		}},
		"AckOrchestrationItem": {kit.Write, func(ctx context.Context) error {
			return kit.ErrOf(f.Provider.AckOrchestrationItem(ctx, fresh.Turn(kit.TurnStarted())))
		}},
		"RedispatchOrchestration": {kit.Send, func(ctx context.Context) error {
			return kit.ErrOf(f.Provider.RedispatchOrchestration(ctx, o, kit.Since(kit.At(1))))
		}},
		"AckWorkItems": {kit.Send, func(ctx context.Context) error {
			return kit.ErrOf(f.Provider.AckWorkItems(ctx, kit.Queue, kit.Done(held[:1], kit.SmallResult)))
		}},
		"PutActivityRecords": {kit.Update, func(ctx context.Context) error {
			return f.Provider.PutActivityRecords(ctx, o.Head.ExecutionID, kit.Beat(3, f.StoredNow(), `1`))
		}},
		"HoldTimers": {kit.Send, func(ctx context.Context) error {
			return f.Provider.HoldTimers(ctx, kit.TimerDue(9, f.StoredNow()))
		}},
		"DeadLetter": {kit.Send, func(ctx context.Context) error {
			return f.Provider.DeadLetter(ctx, kit.Queue, provider.Unreadable{
				Record: kit.Record(1, "x"), Err: errors.New("bad"),
			})
		}},
		"AbandonRecords": {kit.Delay, func(ctx context.Context) error {
			return f.Provider.AbandonRecords(ctx, kit.Queue, time.Second, held[1].Record)
		}},
		"DeleteRecords": {kit.Delete, func(ctx context.Context) error {
			return f.Provider.DeleteRecords(ctx, kit.Queue, held[2].Record)
		}},
	}
	maps.Copy(all, readActions(f, running))
	if f.Supports(provider.CapabilityMonitoring) {
		maps.Copy(all, monitoringActions(f))
	}
	return all
}

func readActions(f *kit.Fixture, e *kit.Execution) map[string]action {
	o, item := e.Read(), e.Item()
	return map[string]action{
		"ReadInstance": {kit.Read, func(ctx context.Context) error {
			return kit.ErrOf(f.Provider.ReadInstance(ctx, "r"))
		}},
		"ReadTerminalEvent": {kit.Read, func(ctx context.Context) error {
			return unless(provider.ErrNotFound, kit.ErrOf(f.Provider.ReadTerminalEvent(ctx, o.Head.ExecutionID)))
		}},
		"ReadHistory": {kit.Read, func(ctx context.Context) error {
			return kit.LastErr(f.Provider.ReadHistory(ctx, o.InstanceID, o.Head.ExecutionID, 0))
		}},
		"ListInstances": {kit.Read, func(ctx context.Context) error {
			return kit.ErrOf(f.Provider.ListInstances(ctx, provider.ListQuery{}))
		}},
		"ReadBuild": {kit.Read, func(ctx context.Context) error {
			return unless(provider.ErrNotFound, kit.ErrOf(f.Provider.ReadBuild(ctx, "b")))
		}},
		"RejectEvents": {kit.Read, func(ctx context.Context) error {
			return f.Provider.RejectEvents(ctx, "", kit.EventMessage("missing", "px", 3))
		}},
		"ReadRejectedEvents": {kit.Read, func(ctx context.Context) error {
			return kit.ErrOf(f.Provider.ReadRejectedEvents(ctx, "c"))
		}},
		"ReadInterruption": {kit.Read, func(ctx context.Context) error {
			return kit.ErrOf(f.Provider.ReadInterruption(ctx, "c"))
		}},
		"ReadOrchestration": {kit.Read, func(ctx context.Context) error {
			return kit.ErrOf(f.Provider.ReadOrchestration(ctx, item, provider.Strong))
		}},
		"ReadActivityRecord": {kit.Read, func(ctx context.Context) error {
			return kit.ErrOf(f.Provider.ReadActivityRecord(ctx, o.Head.ExecutionID, 3))
		}},
		"ReadActivityRecords": {kit.Read, func(ctx context.Context) error {
			return kit.LastErr(f.Provider.ReadActivityRecords(ctx, o.Head.ExecutionID))
		}},
		"PendingInstances": {kit.Read, func(ctx context.Context) error {
			return kit.LastErr(f.Provider.PendingInstances(ctx, f.Now()))
		}},
	}
}

func monitoringActions(f *kit.Fixture) map[string]action {
	return map[string]action{
		"ReportWorker": {kit.Update, func(ctx context.Context) error {
			return f.Provider.ReportWorker(ctx, provider.WorkerReport{Queue: kit.Queue})
		}},
		"ReadWorkers": {kit.Read, func(ctx context.Context) error { return kit.ErrOf(f.Provider.ReadWorkers(ctx)) }},
		"CountAttention": {kit.Read, func(ctx context.Context) error {
			return kit.ErrOf(f.Provider.CountAttention(ctx))
		}},
	}
}

func unless(expected, err error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}

// each calls every action in the order of the names.
func each(actions map[string]action, do func(name string, a action)) {
	for _, name := range slices.Sorted(maps.Keys(actions)) {
		do(name, actions[name])
	}
}

func throttled(f *kit.Fixture) {
	each(actions(f), func(name string, a action) {
		hits := f.Fail(kit.Fault{Operation: a.on, Failure: kit.Throttled, Times: 2})
		if err := a.do(f.Ctx()); err != nil {
			f.T.Errorf("%s: got error %v", name, err)
		}
		if hits() != 2 {
			f.T.Errorf("%s: %d calls were throttled, want 2", name, hits())
		}
	})
}

func refusedCalls(f *kit.Fixture) {
	each(actions(f), func(name string, a action) {
		hits := f.Fail(kit.Fault{Operation: a.on, Failure: kit.Rejected, Times: 1})
		err := a.do(f.Ctx())
		if e, ok := errors.AsType[*provider.Error](err); !ok || e.Retryable || e.Op == "" ||
			!strings.Contains(err.Error(), e.Op) {
			f.T.Errorf("%s: got error %v, want a permanent *provider.Error", name, err)
		}
		if hits() != 1 {
			f.T.Errorf("%s: %d calls were rejected, want 1", name, hits())
		}
	})
}

func throttledForGood(f *kit.Fixture) {
	each(actions(f), func(name string, a action) {
		hits := f.Fail(kit.Fault{Operation: a.on, Failure: kit.Throttled, Times: 1000})
		err := a.do(f.Ctx())
		if e, ok := errors.AsType[*provider.Error](err); !ok || !e.Retryable || e.Op == "" {
			f.T.Errorf("%s: got error %v, want a retryable *provider.Error", name, err)
		}
		if n := hits(); n < 2 || n == 1000 {
			f.T.Errorf("%s: got %d attempts", name, n)
		}
		f.Fail(kit.Fault{}) // no more
	})
}

func errorsNameTheInstance(f *kit.Fixture) {
	actions := actions(f)
	for name, id := range map[string]string{
		"StartOrchestration": "next", "ReadInstance": "r", "ReadOrchestration": "r", "AckOrchestrationItem": "fresh",
	} {
		f.Fail(kit.Fault{Operation: actions[name].on, Failure: kit.Rejected, Times: 1})
		err := actions[name].do(f.Ctx())
		if e, ok := errors.AsType[*provider.Error](err); !ok || e.InstanceID != id {
			f.T.Errorf("%s: got error %v, want one of instance %q", name, err, id)
		}
	}
}

func contextEnded(f *kit.Fixture) {
	actions := actions(f)
	ctx, cancel := context.WithCancel(f.Ctx())
	cancel()
	each(actions, func(name string, a action) {
		if err := a.do(ctx); !errors.Is(err, context.Canceled) {
			f.T.Errorf("%s: got error %v, want %v", name, err, context.Canceled)
		}
	})
	_, err := f.Provider.ReadInstance(f.Ctx(), "next")
	f.WantErrorIs(err, provider.ErrNotFound)
	f.WantStatus("fresh", provider.StatusPending)
}

// contextEndsMeanwhile checks that a call that is being retried ends soon after its context.
func contextEndsMeanwhile(f *kit.Fixture) {
	each(actions(f), func(name string, a action) {
		f.Fail(kit.Fault{Operation: a.on, Failure: kit.Throttled, Times: 1000})
		ctx, cancel := context.WithTimeout(f.Ctx(), 15*time.Millisecond)
		began := f.Now()
		err := a.do(ctx)
		cancel()
		if took := f.Now().Sub(began); err == nil || took > 100*time.Millisecond {
			f.T.Errorf("%s: got error %v after %v", name, err, took)
		}
		f.Fail(kit.Fault{}) // no more
	})
}
