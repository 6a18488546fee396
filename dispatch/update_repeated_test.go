package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// addNamed calls an operation of the entity under the given ID, and times out before there is a result.
func (h *hub) addNamed(ctx context.Context, id string, n int) {
	h.t.Helper()
	short, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	_, err := client.New(h.Provider).CallEntity(short, "sum", "k", "add", n, client.WithUpdateID(id))
	if e, ok := errors.AsType[*client.UpdateError](err); !ok || e.Code != client.UpdatePending {
		h.t.Errorf("got error %v, want pending", err)
	}
}

// addMany sends more operations than the number of IDs that the entity carries over, and enough to make it continue as
// new.
func (h *hub) addMany() {
	h.t.Helper()
	for n := range int64(1300) {
		h.send(sentUpdate("qx", n+1, time.Now(), 1))
	}
}

// A call is repeated before it is processed, and both messages are in the inbox. Between them, the entity continues as
// new, and processes more updates than the number of IDs that it carries over. The operation runs once.
func TestR27_callRepeatedBeforeProcessing_runsOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		h.startAs(sumInstance.InstanceID, perdure.EntityOrchestrationName("sum"), nil)
		h.turns()
		h.addNamed(ctx, "same", 1_000_000)
		h.addMany()
		time.Sleep(6 * time.Minute) // SQS has forgotten the deduplication ID of the first call
		h.addNamed(ctx, "same", 1_000_000)
		h.turns()
		h.wantSum(`{"Total":1001300,"Operations":1301}`)
	})
}

// A call is repeated while the entity is paused. Both calls are parked, and later executions carry them over. The
// operation runs once.
func TestR27_callRepeatedDuringAPause_runsOnce(t *testing.T) {
	t.Parallel()
	joins := func(executionID string) provider.Message {
		m := sentUpdate(executionID, 1, time.Now(), 1_000_000)
		m.EventID = "same"
		return m
	}
	for name, call := range map[string]func(ctx context.Context, h *hub, n int){
		"a client":         func(ctx context.Context, h *hub, _ int) { h.addNamed(ctx, "same", 1_000_000) },
		"an orchestration": func(_ context.Context, h *hub, n int) { h.send(joins(fmt.Sprint("px", n))) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
				in := h.startAs(sumInstance.InstanceID, perdure.EntityOrchestrationName("sum"), nil)
				h.turns()
				h.pause(in, "p1")
				call(ctx, h, 1)
				h.addMany()
				h.turns()
				time.Sleep(6 * time.Minute)
				call(ctx, h, 2)
				h.turns()
				h.resume(in, "r1")
				h.turns()
				h.wantSum(`{"Total":1001300,"Operations":1301}`)
				if received := h.messagesTo("px2"); name != "a client" &&
					(len(received) != 1 || string(received[0].Result) != "1000000") {
					t.Errorf("second caller: got %+v", received)
				}
			})
		})
	}
}

// Two orchestrations call the same update, which ends the instance. The second caller, whose message is in the same
// batch, also receives the result.
func TestR31_updateEndsItsInstance_bothCallersReceiveTheResult(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddOrchestration(r, "ended", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		waits, end := perdure.WithCancel(ctx)
		err := perdure.SetUpdateHandler(ctx, "end", func(_ *perdure.OrchestrationContext, n int) (int, error) {
			end()
			return n, nil
		})
		if err == nil {
			_, _ = perdure.WaitForExternalEvent[int](waits, "never").Await(ctx)
		}
		return 1, err
	})
	inBubble(t, simhub.Options{Registry: r}, func(_ context.Context, h *hub) {
		in := h.startAs("c", "ended", 0)
		h.turns()
		for _, executionID := range []string{"px", "qx"} {
			m := sentUpdate(executionID, 1, time.Now(), 5)
			m.InstanceID, m.Name, m.EventID, m.Orchestration, m.Input = in.InstanceID, "end", "same", "", nil
			h.send(m)
		}
		h.turns()
		h.wantStatus(in, provider.StatusCompleted)
		for _, executionID := range []string{"px", "qx"} {
			if received := h.messagesTo(executionID); len(received) != 1 || string(received[0].Result) != "5" {
				t.Errorf("%s: got %+v, want result 5", executionID, received)
			}
		}
	})
}
