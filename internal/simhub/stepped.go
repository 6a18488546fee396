package simhub

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/wire"
)

// stepped returns r with activities that park before their start and before their outcome. begins, if not nil, is
// called just before the code.
func stepped(r *perdure.Registry, begins func(context.Context)) *perdure.Registry {
	s := perdure.NewRegistry()
	code := (*registry.Registry)(r)
	for _, name := range code.Names().Activities {
		a, _ := code.Activity(name)
		perdure.AddActivity(s, name, func(ctx context.Context, in json.RawMessage) (json.RawMessage, error) {
			stepAt(ctx, "begins")
			if begins != nil {
				begins(ctx)
			}
			out, f := a.Run(ctx, in)
			stepAt(ctx, "ends")
			return out, errorOf(f)
		}, perdure.OnQueue(a.Queue))
	}
	return s
}

// inlineStepped returns r with activities that park in the same way when an orchestrator runs them.
func inlineStepped(r *perdure.Registry, begins func(context.Context, json.RawMessage)) *perdure.Registry {
	return (*perdure.Registry)((*registry.Registry)(r).WithActivities(func(a registry.Activity) registry.Activity {
		run := a.Run
		a.Run = func(ctx context.Context, in json.RawMessage) (json.RawMessage, *history.Failure) {
			stepAt(ctx, "begins inline")
			if begins != nil {
				begins(ctx, in)
			}
			out, f := run(ctx, in)
			stepAt(ctx, "ends inline")
			return out, f
		}
		return a
	}))
}

// errorOf returns an error that is encoded as the failure f.
func errorOf(f *history.Failure) error {
	switch {
	case f == nil:
		return nil
	case f.Type == registry.TypePending:
		return perdure.ErrPending
	case f.Type == history.TypeCancelled && f.Cause == nil:
		return &perdure.CancelledError{Reason: perdure.CancelReason(f.Reason), Message: f.Message}
	default:
		return &failed{f}
	}
}

type failed struct{ failure *history.Failure }

func (e *failed) Error() string      { return e.failure.Message }
func (e *failed) ErrorType() string  { return e.failure.Type }
func (e *failed) NonRetryable() bool { return e.failure.NonRetryable }
func (e *failed) Unwrap() error      { return errorOf(e.failure.Cause) }

// apart runs a worker on the records of a batch. It runs duplicates of an attempt after the others, because their
// activities have the same name, so that their order would be random.
type apart struct{ worker recordHandler }

// HandleRecords implements recordHandler.
func (a apart) HandleRecords(ctx context.Context, records []provider.Record) (failed []string) {
	for len(records) > 0 {
		var now, later []provider.Record
		seen := map[string]bool{}
		for _, r := range records {
			w, _ := wire.DecodeWorkItem(r.Body)
			attempt := fmt.Sprintf("%s #%d %d", w.ExecutionID, w.ActivityID, w.Attempt)
			if seen[attempt] {
				later = append(later, r)
			} else {
				now, seen[attempt] = append(now, r), true
			}
		}
		failed = append(failed, a.worker.HandleRecords(ctx, now)...)
		records = later
	}
	return failed
}
