package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/examples/orders"
	"github.com/perdure/perdure/history"
)

// result is the outcome of an order.
type result struct {
	failed bool   // the orchestration did not complete
	ended  string // compared with scenario.ends
	err    error  // no outcome, or an unexpected one
}

// follow starts an order, acts as the warehouse, and prints the history of the order until it ends.
func follow(ctx context.Context, a *api, s *screen, o orders.Order) result {
	f := scenarioOf(o.ID)
	if err := a.start(ctx, "fulfil-order", o.ID, f.delay, o); err != nil {
		return result{err: fmt.Errorf("%s: start: %w", o.ID, err)}
	}
	s.line(o.ID, "started",
		fmt.Sprintf("%d lines, %d.%02d, to %s%s", len(o.Lines), o.Total()/100, o.Total()%100, o.ShipTo.City,
			inTime(f.delay)))
	after := int64(0)
	for {
		events, err := a.history(ctx, o.ID, after)
		if err != nil {
			return result{err: fmt.Errorf("%s: history: %w", o.ID, err)}
		}
		for i := range events {
			e := &events[i]
			after = e.ID
			s.event(o.ID, e)
			if e.Kind.Terminal() {
				return printCancellations(ctx, a, s, o.ID, f, compareOutcome(o.ID, f, e))
			}
			if err := pack(ctx, a, s, o.ID, f, e); err != nil {
				return result{err: fmt.Errorf("%s: raise: %w", o.ID, err)}
			}
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return result{err: fmt.Errorf("%s: %w", o.ID, err)}
		}
	}
}

// printCancellations waits until all cancellations of a slow order have ended and prints them.
func printCancellations(ctx context.Context, a *api, s *screen, instanceID string, f scenario, r result) result {
	for f.slow && r.err == nil {
		why, err := a.cancellations(ctx, instanceID)
		if err != nil {
			r.err = fmt.Errorf("%s: cancellations: %w", instanceID, err)
			break
		}
		if !slices.ContainsFunc(why, func(c client.Cancellation) bool { return c.End == "" }) {
			s.why(instanceID, why)
			break
		}
		r.err = pause(ctx, 100*time.Millisecond)
	}
	return r
}

func inTime(delay string) string {
	if delay == "" {
		return ""
	}
	return ", start delay " + delay
}

// pack raises the event "packed" when the order waits for it, or cancels the order during its charge.
func pack(ctx context.Context, a *api, s *screen, instanceID string, f scenario, e *history.Event) error {
	if f.cancelled && e.Kind == history.ActivityScheduled && e.Name == "charge-card" {
		s.line(instanceID, "cancelling", "during the charge")
		return a.cancel(ctx, instanceID, "changed my mind")
	}
	if f.unpacked || e.Kind != history.CustomStatusSet || text(e.CustomStatus) != orders.Packing {
		return nil
	}
	s.line(instanceID, "raising", orders.EventPacked)
	return a.raise(ctx, instanceID, orders.EventPacked)
}

// compareOutcome compares the outcome of an order with its scenario.
func compareOutcome(instanceID string, f scenario, end *history.Event) result {
	r := result{failed: end.Kind != history.OrchestrationCompleted}
	switch {
	case end.Kind == history.OrchestrationCancelled:
		r.ended = statusCancelled
	case r.failed:
		r.ended = failureType(end.Error)
	default:
		var done orders.Fulfilment
		r.err = json.Unmarshal(end.Output, &done)
		r.ended = done.Status
	}
	if r.err == nil && r.ended != f.ends {
		r.err = fmt.Errorf("%s: unexpected outcome %q, want %q", instanceID, r.ended, f.ends)
	}
	return r
}

// failureType returns the error type of a failed orchestration, or of the activity that failed.
func failureType(f *history.Failure) string {
	if f == nil {
		return ""
	}
	if f.Cause == nil {
		return f.Type
	}
	return cmp.Or(f.Cause.Type, f.Type)
}

// text returns the string of a payload, or the JSON text if the payload is not a string.
func text(p history.Payload) string {
	var s string
	if json.Unmarshal(p, &s) != nil {
		return string(p)
	}
	return s
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
