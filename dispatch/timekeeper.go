package dispatch

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure/provider"
)

// Timekeeper serves the timers queue, and keeps watch over instances that got stuck. It is safe for concurrent use.
type Timekeeper struct {
	options  Options
	provider provider.Provider
	missing  missing
}

// NewTimekeeper makes a timekeeper. It calls nothing.
func NewTimekeeper(opts Options) *Timekeeper {
	opts = opts.withDefaults()
	return &Timekeeper{options: opts, provider: opts.Provider}
}

// waitHere is the longest a timer is waited out in the function. Queues delay by whole seconds: the rest is waited here.
const waitHere = 1500 * time.Millisecond

// HandleRecords fires the timers that are due, waits for those that nearly are, and has the others held meanwhile. It returns
// the ids of the records that failed.
func (k *Timekeeper) HandleRecords(ctx context.Context, records []provider.Record) (failed []string) {
	timers, unreadable := k.provider.AdoptTimers(records)
	failed = abandon(ctx, k.options, provider.QueueTimers, deadLetter(ctx, k.options, provider.QueueTimers, unreadable))
	slices.SortStableFunc(timers, func(a, b provider.LockedTimer) int { return a.FireAt.Compare(b.FireAt) })
	near := 0
	for near < len(timers) && timers[near].FireAt.Sub(k.options.Clock()) <= waitHere {
		near++
	}
	var held []string
	var holding sync.WaitGroup
	holding.Go(func() { held = k.holdAll(ctx, timers[near:]) })
	failed = append(failed, k.fireAll(ctx, timers[:near])...)
	holding.Wait()
	return append(failed, held...)
}

// fireAll fires timers, the earliest first, each when it is due.
func (k *Timekeeper) fireAll(ctx context.Context, timers []provider.LockedTimer) (failed []string) {
	for len(timers) > 0 {
		if err := waitUntil(ctx, k.options.Clock, timers[0].FireAt); err != nil {
			return append(failed, k.failure(ctx, timers, err)...)
		}
		due := k.due(timers)
		failed = append(failed, k.handle(ctx, timers[:due], k.fire)...)
		timers = timers[due:]
	}
	return failed
}

// holdAll holds timers together, or each by itself when that fails: one that cannot be held must not make the others late.
func (k *Timekeeper) holdAll(ctx context.Context, timers []provider.LockedTimer) (failed []string) {
	if len(timers) > 1 && k.hold(ctx, timers) == nil {
		return nil
	}
	for i := range timers {
		failed = append(failed, k.handle(ctx, timers[i:i+1], k.hold)...)
	}
	return failed
}

func (k *Timekeeper) due(timers []provider.LockedTimer) int {
	n := 1
	for n < len(timers) && !timers[n].FireAt.After(k.options.Clock()) {
		n++
	}
	return n
}

// waitUntil waits in the function until a time, or until ctx ends.
func waitUntil(ctx context.Context, clock func() time.Time, at time.Time) error {
	left := at.Sub(clock())
	if left <= 0 {
		return nil
	}
	if !wait(ctx, left) {
		return fmt.Errorf("dispatch: waiting until %v: %w", at, context.Cause(ctx))
	}
	return nil
}

// wait waits for so long, or reports false when ctx ends before.
func wait(ctx context.Context, d time.Duration) (waited bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (k *Timekeeper) handle(ctx context.Context, timers []provider.LockedTimer, do func(context.Context, []provider.LockedTimer) error) []string {
	if len(timers) == 0 {
		return nil
	}
	if err := do(ctx, timers); err != nil {
		return k.failure(ctx, timers, err)
	}
	return nil
}

// fire tells the instances. A timer that was cancelled meanwhile is dropped by the turn.
func (k *Timekeeper) fire(ctx context.Context, timers []provider.LockedTimer) error {
	ms := make([]provider.Message, len(timers))
	for i := range timers {
		t := &timers[i]
		if t.Refresh > 0 {
			ms[i] = provider.Message{
				Kind: provider.MessageWake, InstanceID: t.InstanceID, ExecutionID: t.ExecutionID, Segment: t.Segment, TimerID: t.TimerID, Refresh: t.Refresh,
			}
			continue
		}
		ms[i] = provider.Message{
			Kind: provider.MessageTimerFired, InstanceID: t.InstanceID, ExecutionID: t.ExecutionID, Segment: t.Segment, TimerID: t.TimerID, FireAt: &t.FireAt,
			Activity: t.Activity, Attempt: t.Attempt,
		}
	}
	return k.provider.EnqueueForOrchestrator(ctx, ms...)
}

// hold makes timers come back when they are nearly due; their records are then done.
func (k *Timekeeper) hold(ctx context.Context, timers []provider.LockedTimer) error {
	ts := make([]provider.Timer, len(timers))
	for i := range timers {
		ts[i] = timers[i].Timer
	}
	return k.provider.HoldTimers(ctx, ts...)
}

func (k *Timekeeper) failure(ctx context.Context, timers []provider.LockedTimer, err error) []string {
	k.options.Logger.ErrorContext(ctx, "timers were not served, their records will be delivered again", "timers", len(timers), "error", err)
	records := make([]provider.Record, len(timers))
	for i := range timers {
		records[i] = timers[i].Record
	}
	return abandon(ctx, k.options, provider.QueueTimers, records)
}
