package dispatch_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// lateKey marks the calls of a late worker.
type lateKey struct{}

// Interleaving: a heartbeat of a frozen worker process is written at any step of the purge of its instance, or after
// the purge. Its details must not remain.
func TestR17_heartbeatWrittenDuringPurge_leavesNothing(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]bool{"the first": false, "a later one": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steps := int64(1)
			for n := int64(1); n <= steps+1; n++ {
				inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
					steps = h.purgeWithLateHeartbeat(ctx, n, before)
				})
			}
			if steps < 5 {
				t.Errorf("got %d steps, want at least 5", steps)
			}
		})
	}
}

// purgeWithLateHeartbeat writes a heartbeat before the n-th call of a purge, or after the last, and returns the number
// of calls.
func (h *hub) purgeWithLateHeartbeat(ctx context.Context, n int64, before bool) (calls int64) {
	const sk = "a#0000000006"
	in := h.start("again-with", loop{Left: 1})
	h.turn(0)
	time.Sleep(time.Minute)
	h.send(provider.Message{
		Kind: provider.MessageTimerFired, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, TimerID: 3,
	})
	h.turn(0) // schedules activity 6
	heartbeat := func(ctx context.Context) error {
		return h.Provider.PutActivityRecords(ctx, in.ExecutionID, provider.ActivityRecord{
			ActivityID: 6, Details: json.RawMessage(`"half way"`), LastHeartbeatAt: time.Now(),
		})
	}
	if before {
		if err := heartbeat(ctx); err != nil {
			h.t.Fatal(err)
		}
	}
	held, finished := make(chan struct{}), make(chan error, 1)
	var made atomic.Int64
	land := func() {
		close(held)
		if err := <-finished; err != nil {
			h.t.Error(err)
		}
	}
	h.interfere(func(ctx context.Context, c simaws.Call, next func() error) error {
		if ctx.Value(lateKey{}) == nil {
			if made.Add(1) == n {
				land()
			}
			return next()
		}
		if u, ok := c.Input.(*dynamodb.UpdateItemInput); ok && text(u.Key, "sk") == sk {
			<-held
		}
		return next()
	})
	go func() { finished <- heartbeat(context.WithValue(ctx, lateKey{}, true)) }()
	if err := h.Provider.DeleteInstance(ctx, in.InstanceID, true); err != nil {
		h.t.Fatal(err)
	}
	if calls = made.Load(); calls < n {
		land()
	}
	h.interfere(nil)
	if left := h.item("x#"+in.ExecutionID, sk); left != nil {
		h.t.Errorf("written before call %d of %d: heartbeat left %s", n, calls, text(left, "details"))
	}
	return calls
}
