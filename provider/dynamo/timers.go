package dynamo

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure/provider"
)

// DecodeTimers decodes the records of the timers queue.
func (p *Provider) DecodeTimers(records []provider.Record) (timers []provider.LockedTimer, unreadable []provider.Unreadable) {
	for _, r := range records {
		t, err := provider.DecodeTimer(r.Body)
		if err == nil {
			err = p.ofHub(&t.Hub)
		}
		if err != nil {
			unreadable = append(unreadable, provider.Unreadable{Record: r, Err: err})
			continue
		}
		timers = append(timers, provider.LockedTimer{Timer: t, Record: r})
	}
	return timers, unreadable
}

// HoldTimers sends timers to the timers queue with their remaining delay. If a timer exceeds the maximum delay,
// HoldTimers creates a schedule, or sends the timer with the maximum delay if the hub uses TimersRequeue.
func (p *Provider) HoldTimers(ctx context.Context, timers ...provider.Timer) error {
	var far, near []provider.Timer
	for i := range timers {
		if p.needsSchedule(&timers[i]) {
			far = append(far, timers[i])
		} else {
			near = append(near, timers[i])
		}
	}
	// The schedules come first, because they can be created again after a failure, and a message that was sent stays.
	if err := p.scheduleTimers(ctx, far); err != nil {
		return err
	}
	return p.delayTimers(ctx, near)
}

// delayTimers sends timers to the timers queue with their remaining delay, or the maximum delay.
func (p *Provider) delayTimers(ctx context.Context, timers []provider.Timer) error {
	entries, err := p.timerEntries(timers)
	if err != nil {
		return err
	}
	sent, err := p.sendAll(ctx, outgoing{{p.hub.TimersURL, entries}})
	if refused := sent.refused; len(refused) > 0 {
		return fmt.Errorf("dynamo: %d timers were rejected: %s %s", len(refused), refused[0].code, refused[0].message)
	}
	return err
}

func (p *Provider) timerEntries(timers []provider.Timer) ([]entry, error) {
	entries := make([]entry, 0, len(timers))
	for i := range timers {
		t := timers[i]
		t.Hub = p.hub.Name
		e, err := newEntry(&t, t.TimerID, bodyLimit)
		if err != nil {
			return nil, fmt.Errorf("dynamo: timer %d of instance %q: %w", timers[i].TimerID, timers[i].InstanceID, err)
		}
		e.known = true
		e.delay = p.delayUntil(timers[i].FireAt)
		entries = append(entries, e)
	}
	return entries, nil
}

// delayUntil returns the delay of a message, rounded down. The receiver waits for the rest of the second, so that a
// timer is exact and not a second late.
func (p *Provider) delayUntil(at time.Time) int32 {
	return int32(min(max(at.Sub(p.now()), 0), p.longestDelay) / time.Second)
}
