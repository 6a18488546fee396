package dispatch_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// endingRegistry returns a registry whose orchestration ends in its first turn.
func endingRegistry() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "sleeper", func(*perdure.OrchestrationContext, int) (int, error) { return 7, nil })
	return r
}

// crashBeforeTheStatus kills the process that is about to write the status Completed.
func crashBeforeTheStatus() (simaws.Interceptor, *atomic.Bool) {
	return crashOnce(false, func(c simaws.Call) bool {
		u, ok := c.Input.(*dynamodb.UpdateItemInput)
		return ok && text(u.ExpressionAttributeValues, ":status") == "Completed"
	})
}

// over serves for a day, and fails the test unless the instance is completed and the hub is idle.
func (h *hub) over(in provider.Instance) {
	h.t.Helper()
	h.serveFor(24 * time.Hour)
	if now := h.read(in); now.Status != provider.StatusCompleted {
		h.t.Errorf("the instance is %s a day after its end, want completed", now.Status)
	}
	h.checkIdle()
}

// Turns without code commit messages that arrive before the start time. The code ends in its first turn, and the
// process crashes before it writes the status.
func TestR2_processDiesAfterDelayedFirstTurnEnds_statusIsWritten(t *testing.T) {
	t.Parallel()
	intercept, crashed := crashBeforeTheStatus()
	inBubble(t, simhub.Options{Registry: endingRegistry(), Intercept: intercept}, func(ctx context.Context, h *hub) {
		s := provider.Start{
			InstanceID: "i-1", Name: "sleeper", Input: encoded(t, 0), StartID: "start-1",
			StartAt: time.Now().Add(time.Minute),
		}
		in, err := h.Provider.StartOrchestration(ctx, s)
		if err != nil {
			t.Fatal(err)
		}
		h.raise(in, "e", 1)
		h.over(in)
		if !crashed.Load() {
			t.Error("no process crashed")
		}
	})
}

// An instance is blocked, and the event that ends it is parked. Another event runs the turn of a fixed build, which
// consumes only the parked event and ends.
func TestR2_processDiesAfterTurnOfParkedEventEnds_statusIsWritten(t *testing.T) {
	t.Parallel()
	intercept, crashed := crashBeforeTheStatus()
	inBubble(t, simhub.Options{Registry: sleeper(1, "add"), Intercept: intercept}, func(_ context.Context, h *hub) {
		in := h.start("sleeper", 0)
		h.turn(0)
		broken := h.orchestrator(sleeper(1, "plus"), "broken")
		h.raise(in, "e", 5)
		for range 3 {
			time.Sleep(10 * time.Minute)
			h.passRecords(broken)
		}
		if now := h.read(in); now.Status != provider.StatusBlocked {
			t.Fatalf("the instance is %s, want blocked", now.Status)
		}
		h.orchestrator(sleeper(1, "add"), "fixed")
		h.raise(in, "f", 1)
		h.over(in)
		if !crashed.Load() {
			t.Error("no process crashed")
		}
	})
}
