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

// result is how an order ended.
type result struct {
	failed bool   // the orchestration, as opposed to completed
	ended  string // as in fate
	err    error  // unknown, or not as it should have ended
}

// follow starts an order, plays the warehouse, and shows its history as it grows, until it is over.
func follow(ctx context.Context, a *api, s *screen, o orders.Order) result {
	f := fateOf(o.ID)
	if err := a.start(ctx, "fulfil-order", o.ID, f.delay, o); err != nil {
		return result{err: fmt.Errorf("%s: start: %w", o.ID, err)}
	}
	s.line(o.ID, "started", fmt.Sprintf("%d lines, %d.%02d, to %s%s", len(o.Lines), o.Total()/100, o.Total()%100, o.ShipTo.City, inTime(f.delay)))
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
				return told(ctx, a, s, o.ID, f, judged(o.ID, f, e))
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

// told shows why something of the order was cancelled, and what became of it, once that is known.
func told(ctx context.Context, a *api, s *screen, instanceID string, f fate, r result) result {
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
	return ", not before " + delay
}

// pack raises the event that an order has come to wait for, or cancels an order whose fate that is.
func pack(ctx context.Context, a *api, s *screen, instanceID string, f fate, e *history.Event) error {
	if f.cancelled && e.Kind == history.ActivityScheduled && e.Name == "charge-card" {
		s.line(instanceID, "cancelling", "in the midst of its payment")
		return a.cancel(ctx, instanceID, "changed my mind")
	}
	if f.unpacked || e.Kind != history.CustomStatusSet || text(e.CustomStatus) != orders.Packing {
		return nil
	}
	s.line(instanceID, "raising", orders.EventPacked)
	return a.raise(ctx, instanceID, orders.EventPacked)
}

// judged holds the end of an order against its fate.
func judged(instanceID string, f fate, end *history.Event) result {
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
		r.err = fmt.Errorf("%s ended as %q, not as %q", instanceID, r.ended, f.ends)
	}
	return r
}

// failureType names what an orchestration failed with: of an activity's failure, what the activity failed with.
func failureType(f *history.Failure) string {
	if f == nil {
		return ""
	}
	if f.Cause == nil {
		return f.Type
	}
	return cmp.Or(f.Cause.Type, f.Type)
}

// text is a payload that is a string; any other as it is.
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
