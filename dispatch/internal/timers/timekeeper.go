// Package timers fires timers and runs the sweeper.
package timers

import (
	"context"
	"slices"
	"sync"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// Timekeeper implements dispatch.Renewer.
type Timekeeper struct {
	base     intake.Base
	options  Options
	provider provider.Provider
	missing  missing
	meter    *intake.Meter
	looks    looks
}

// HandleRecords implements dispatch.Renewer.HandleRecords.
func (k *Timekeeper) HandleRecords(ctx context.Context, records []provider.Record) (failed []string) {
	timers, unreadable := k.provider.DecodeTimers(records)
	failed = intake.Abandon(ctx, &k.base, provider.QueueTimers, intake.DeadLetter(ctx, &k.base, provider.QueueTimers, unreadable))
	slices.SortStableFunc(timers, func(a, b provider.LockedTimer) int { return a.FireAt.Compare(b.FireAt) })
	near := 0
	for near < len(timers) && timers[near].FireAt.Sub(k.options.Clock()) <= intake.WaitHere {
		near++
	}
	var held []string
	var holding sync.WaitGroup
	holding.Go(func() { held = k.holdAll(ctx, timers[near:]) })
	leased, release := k.lease(ctx, timers[:near])
	failed = append(failed, k.fireAll(ctx, leased, timers[:near])...)
	release()
	holding.Wait()
	return append(failed, held...)
}

// fireAll fires timers, the earliest first, each when it is due.
func (k *Timekeeper) fireAll(ctx context.Context, leased *lease, timers []provider.LockedTimer) (failed []string) {
	for len(timers) > 0 {
		if err := intake.WaitUntil(ctx, k.options.Clock, timers[0].FireAt); err != nil {
			return append(failed, k.failure(ctx, leased, timers, err)...)
		}
		due := k.due(timers)
		failed = append(failed, k.handle(ctx, leased, timers[:due], k.fire)...)
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
		failed = append(failed, k.handle(ctx, nil, timers[i:i+1], k.hold)...)
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

func (k *Timekeeper) handle(ctx context.Context, leased *lease, timers []provider.LockedTimer, do func(context.Context, []provider.LockedTimer) error) []string {
	if len(timers) == 0 {
		return nil
	}
	if err := do(ctx, timers); err != nil {
		return k.failure(ctx, leased, timers, err)
	}
	return nil
}

// fire sends that timers are due to their instances. A timer that was cancelled meanwhile is dropped by the turn.
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

func (k *Timekeeper) failure(ctx context.Context, leased *lease, timers []provider.LockedTimer, err error) []string {
	k.options.Logger.ErrorContext(ctx, "timer handling failed, records will be redelivered",
		"event", logevent.TimerHandlingFailed, "timers", len(timers), "error", err)
	records := make([]provider.Record, len(timers))
	for i := range timers {
		records[i] = timers[i].Record
	}
	leased.drop(records)
	return intake.Abandon(ctx, &k.base, provider.QueueTimers, records)
}
