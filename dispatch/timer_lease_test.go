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

// aMinute is the delay of a timer. Queues delay by whole seconds, so the renewer waits for the rest.
const aMinute = time.Minute + 900*time.Millisecond

// timerDelay runs an instance with a timer of a minute, and returns the delay of the timer.
func (h *hub) timerDelay() time.Duration {
	h.t.Helper()
	in := h.start("timer", aMinute)
	end := h.finish(in)
	return end.Time.Sub(in.CreatedAt.Add(aMinute))
}

// sendsDueTimers reports whether a call is the renewer's send of due timers.
func sendsDueTimers(c simaws.Call) bool {
	return c.Service == "SQS" && c.Operation == "SendMessageBatch"
}

// A renewer is killed before or after each of its calls. Timers are exact to the second, and a crash delays them by at
// most ten seconds. The first call shortens the visibility timeout. A crash before that call delays them by the
// visibility timeout of the queue.
func TestTimers_renewerIsKilled_areLateByAtMostTenSeconds(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		for n := 1; ; n++ {
			var calls, most atomic.Int64 // a lease is taken concurrently
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
					if name, _ := simhub.Process(ctx); !isTimersInvocation(name) {
						return next()
					}
					return crash(ctx, c, next)
				})
				if late := h.timerDelay(); late < 0 || late > time.Duration(most.Load()) {
					t.Errorf("crash at call %d of the renewer, after=%v: timer is late by %v", n, after, late)
				}
			})
			if calls.Load() < int64(n) {
				break
			}
		}
	}
}

// isTimersInvocation reports whether an invocation, by its name, processes the timers queue.
func isTimersInvocation(name string) bool {
	return len(name) > 0 && name[:min(len(name), 6)] == "timers"
}

// If a renewer crashes repeatedly, its timers are leased for longer, so that they do not become dead letters within
// minutes.
func TestTimers_renewerDiesRepeatedly_areLeasedLonger(t *testing.T) {
	t.Parallel()
	var deliveries []time.Time
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		crash := simhub.Crash(func(c simaws.Call) (before, after bool) {
			if !sendsDueTimers(c) || len(deliveries) >= 5 {
				return false, false
			}
			deliveries = append(deliveries, time.Now())
			return true, false
		})
		h.interfere(func(ctx context.Context, c simaws.Call, next func() error) error {
			if name, _ := simhub.Process(ctx); !isTimersInvocation(name) {
				return next()
			}
			return crash(ctx, c, next)
		})
		_ = h.timerDelay()
	})
	if len(deliveries) < 5 {
		t.Fatalf("got %d deaths, want 5", len(deliveries))
	}
	for i, want := range []bool{true, true, true, false} {
		if d := deliveries[i+1].Sub(deliveries[i]); d <= 10*time.Second != want {
			t.Errorf("deaths %d and %d are %v apart", i+1, i+2, d)
		}
	}
}

// The lease is renewed while the renewer works, so a slow send is not repeated.
func TestTimers_renewerIsSlow_areNotDeliveredTwice(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		var sent atomic.Int64
		h.interfere(func(ctx context.Context, c simaws.Call, next func() error) error {
			if name, _ := simhub.Process(ctx); !isTimersInvocation(name) || !sendsDueTimers(c) {
				return next()
			}
			sent.Add(1)
			if err := sleep.For(ctx, 40*time.Second); err != nil {
				return err
			}
			return next()
		})
		if late := h.timerDelay(); late < 40*time.Second || late > 42*time.Second || sent.Load() != 1 {
			t.Errorf("late by %v, sent %d times, want once", late, sent.Load())
		}
	})
}

// A failed lease has no other effect. The timer fires and is deleted.
func TestTimers_leaseFails_fireOnTime(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if c.Operation == "ChangeMessageVisibilityBatch" {
				return errors.New("refused")
			}
			return next()
		})
		if late := h.timerDelay(); late < 0 || late > 2*time.Second {
			t.Errorf("late by %v", late)
		}
	})
}

// A failed timer is visible again after its retry delay, before the end of its lease.
func TestTimers_sendFails_areRedeliveredInSeconds(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		failed := false
		h.interfere(func(ctx context.Context, c simaws.Call, next func() error) error {
			if name, _ := simhub.Process(ctx); isTimersInvocation(name) && sendsDueTimers(c) && !failed {
				failed = true
				return &provider.Error{Op: "SQS.SendMessageBatch", Err: errors.New("refused")}
			}
			return next()
		})
		if late := h.timerDelay(); !failed || late > 4*time.Second {
			t.Errorf("failed=%v: late by %v", failed, late)
		}
	})
}
