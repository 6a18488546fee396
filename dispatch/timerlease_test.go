package dispatch_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/internal/sleep"
	"github.com/perdure/perdure/provider"
)

// aMinute is a timer's delay. Queues delay by whole seconds, so the renewer waits for the rest.
const aMinute = time.Minute + 900*time.Millisecond

// lateBy runs an instance with a timer of a minute, and returns how late it fires.
func (h *hub) lateBy() time.Duration {
	h.t.Helper()
	in := h.start("timer", aMinute)
	end := h.finish(in)
	return end.Time.Sub(in.CreatedAt.Add(aMinute))
}

// timersDue is the call by which a renewer sends that timers are due.
func timersDue(c simaws.Call) bool { return c.Service == "SQS" && c.Operation == "SendMessageBatch" }

// A renewer is killed at each of its calls, before and after it: timers are due to the second, and a death makes them
// late by ten at most. Its first call is what shortens the time for which they are hidden: a death before that, in the
// first milliseconds, makes them as late as the queue's visibility timeout.
func TestTimers_renewerIsKilled_areLateByTenSecondsAtMost(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		for n := 1; ; n++ {
			var calls, most atomic.Int64 // a lease is taken beside the rest
			most.Store(int64(10 * time.Second))
			crash := simhub.Crash(func(c simaws.Call) (bool, bool) {
				hit := calls.Add(1) == int64(n)
				if hit && !after && c.Operation == "ChangeMessageVisibilityBatch" {
					most.Store(int64(61 * time.Second))
				}
				return hit && !after, hit && after
			})
			inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
				h.interfere(func(ctx context.Context, c simaws.Call, next func() error) error {
					if name, _ := simhub.Process(ctx); !isOfTimers(name) {
						return next()
					}
					return crash(ctx, c, next)
				})
				if late := h.lateBy(); late < 0 || late > time.Duration(most.Load()) {
					t.Errorf("crash at call %d of the renewer, after=%v: the timer is late by %v", n, after, late)
				}
			})
			if calls.Load() < int64(n) {
				break
			}
		}
	}
}

// isOfTimers reports whether an invocation, by its name, is of the timers queue.
func isOfTimers(name string) bool { return len(name) > 0 && name[:min(len(name), 6)] == "timers" }

// A renewer that dies again and again holds its timers for longer, so that they do not become dead letters in minutes.
func TestTimers_renewerDiesAgainAndAgain_areHeldLonger(t *testing.T) {
	t.Parallel()
	var deliveries []time.Time
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		crash := simhub.Crash(func(c simaws.Call) (before, after bool) {
			if !timersDue(c) || len(deliveries) >= 5 {
				return false, false
			}
			deliveries = append(deliveries, time.Now())
			return true, false
		})
		h.interfere(func(ctx context.Context, c simaws.Call, next func() error) error {
			if name, _ := simhub.Process(ctx); !isOfTimers(name) {
				return next()
			}
			return crash(ctx, c, next)
		})
		_ = h.lateBy()
	})
	if len(deliveries) < 5 {
		t.Fatalf("it died %d times", len(deliveries))
	}
	for i, want := range []bool{true, true, true, false} {
		if d := deliveries[i+1].Sub(deliveries[i]); d <= 10*time.Second != want {
			t.Errorf("between deaths %d and %d there are %v", i+1, i+2, d)
		}
	}
}

// The lease lasts while the renewer works: what takes longer is not done twice.
func TestTimers_renewerIsSlow_areNotDeliveredTwice(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		var sent atomic.Int64
		h.interfere(func(ctx context.Context, c simaws.Call, next func() error) error {
			if name, _ := simhub.Process(ctx); !isOfTimers(name) || !timersDue(c) {
				return next()
			}
			sent.Add(1)
			if err := sleep.For(ctx, 40*time.Second); err != nil {
				return err
			}
			return next()
		})
		if late := h.lateBy(); late < 40*time.Second || late > 42*time.Second || sent.Load() != 1 {
			t.Errorf("late by %v, sent %d times", late, sent.Load())
		}
	})
}

// A lease that cannot be taken changes nothing else: the timer fires, and is done.
func TestTimers_leaseFails_fireAllTheSame(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if c.Operation == "ChangeMessageVisibilityBatch" {
				return errors.New("refused")
			}
			return next()
		})
		if late := h.lateBy(); late < 0 || late > 2*time.Second {
			t.Errorf("late by %v", late)
		}
	})
}

// Interleaving: what failed becomes visible when its deliveries say, and not when the lease would have ended.
func TestTimers_sendFails_comeAgainInSeconds(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		failed := false
		h.interfere(func(ctx context.Context, c simaws.Call, next func() error) error {
			if name, _ := simhub.Process(ctx); isOfTimers(name) && timersDue(c) && !failed {
				failed = true
				return &provider.Error{Op: "SQS.SendMessageBatch", Err: errors.New("refused")}
			}
			return next()
		})
		if late := h.lateBy(); !failed || late > 4*time.Second {
			t.Errorf("failed: %v, late by %v", failed, late)
		}
	})
}
