// Package timers handles the records of the timers queue: it fires timers that are due, and holds the others.
package timers

import (
	"context"
	"slices"
	"sync"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// Handler implements dispatch.Renewer.HandleRecords. It is safe for concurrent use.
type Handler struct{ *intake.Base }

// HandleRecords implements dispatch.Renewer.HandleRecords.
func (h Handler) HandleRecords(ctx context.Context, records []provider.Record) (failed []string) {
	timers, unreadable := h.Provider.DecodeTimers(records)
	notMoved := intake.DeadLetter(ctx, h.Base, provider.QueueTimers, unreadable)
	failed = intake.Abandon(ctx, h.Base, provider.QueueTimers, notMoved)
	slices.SortStableFunc(timers, func(a, b provider.LockedTimer) int { return a.FireAt.Compare(b.FireAt) })
	near := 0
	for near < len(timers) && timers[near].FireAt.Sub(h.Clock()) <= intake.MaxTimerWait {
		near++
	}
	var failedHolds []string
	var holding sync.WaitGroup
	holding.Go(func() { failedHolds = h.holdAll(ctx, timers[near:]) })
	leased, release := h.lease(ctx, timers[:near])
	failed = append(failed, h.fireAll(ctx, leased, timers[:near])...)
	release()
	holding.Wait()
	return append(failed, failedHolds...)
}

func (h Handler) fireAll(ctx context.Context, leased *lease, timers []provider.LockedTimer) (failed []string) {
	for len(timers) > 0 {
		if err := intake.WaitUntil(ctx, h.Clock, timers[0].FireAt); err != nil {
			return append(failed, h.release(ctx, leased, timers, err)...)
		}
		n := h.countDue(timers)
		if err := h.fire(ctx, timers[:n]); err != nil {
			failed = append(failed, h.release(ctx, leased, timers[:n], err)...)
		}
		timers = timers[n:]
	}
	return failed
}

// holdAll holds timers together. If the call fails, it holds each timer separately, so that a timer that cannot be held
// does not delay the others.
func (h Handler) holdAll(ctx context.Context, timers []provider.LockedTimer) (failed []string) {
	if len(timers) > 1 && h.hold(ctx, timers) == nil {
		return nil
	}
	for i := range timers {
		if err := h.hold(ctx, timers[i:i+1]); err != nil {
			failed = append(failed, h.release(ctx, nil, timers[i:i+1], err)...)
		}
	}
	return failed
}

// countDue returns the number of sorted timers that are due. The first one must be due.
func (h Handler) countDue(timers []provider.LockedTimer) int {
	n := 1
	for n < len(timers) && !timers[n].FireAt.After(h.Clock()) {
		n++
	}
	return n
}

// fire notifies instances that their timers are due. The turn drops a timer that was cancelled.
func (h Handler) fire(ctx context.Context, timers []provider.LockedTimer) error {
	ms := make([]provider.Message, len(timers))
	for i := range timers {
		t := &timers[i]
		ms[i] = provider.Message{
			InstanceID: t.InstanceID, ExecutionID: t.ExecutionID, Segment: t.Segment, TimerID: t.TimerID,
		}
		if t.Refresh > 0 {
			ms[i].Kind, ms[i].Refresh = provider.MessageWake, t.Refresh
			continue
		}
		ms[i].Kind, ms[i].FireAt = provider.MessageTimerFired, &t.FireAt
		ms[i].Activity, ms[i].Attempt = t.Activity, t.Attempt
	}
	return h.Provider.EnqueueForOrchestrator(ctx, ms...)
}

// hold passes timers to the provider (HoldTimers), which resends them so that they arrive when they are nearly due.
// Their records can then be deleted. It is not related to Record.Hold, which is a lock.
func (h Handler) hold(ctx context.Context, timers []provider.LockedTimer) error {
	ts := make([]provider.Timer, len(timers))
	for i := range timers {
		ts[i] = timers[i].Timer
	}
	return h.Provider.HoldTimers(ctx, ts...)
}

// release releases the records of timers to the queue after an error, and returns their IDs.
func (h Handler) release(ctx context.Context, leased *lease, timers []provider.LockedTimer, err error) []string {
	h.Logger.ErrorContext(ctx, "timer handling failed, records will be redelivered",
		"event", logevent.TimerHandlingFailed, "timers", len(timers), "error", err)
	records := make([]provider.Record, len(timers))
	for i := range timers {
		records[i] = timers[i].Record
	}
	leased.drop(records)
	return intake.Abandon(ctx, h.Base, provider.QueueTimers, records)
}
