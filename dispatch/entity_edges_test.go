package dispatch_test

import (
	"context"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// An entity is cancelled while calls arrive faster than it processes them. It completes the accepted operations and
// ends. Later calls are rejected.
func TestR31_busyEntityIsCancelled_endsAfterAcceptedOperations(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddEntity(r, "steady",
		perdure.Operation("add", func(ctx *perdure.OrchestrationContext, total *int, n int) (int, error) {
			*total += n
			return *total, perdure.Sleep(perdure.WithoutCancel(ctx), time.Second)
		}))
	inBubble(t, simhub.Options{Registry: r}, func(_ context.Context, h *hub) {
		in := provider.Instance{InstanceID: perdure.EntityInstanceID("steady", "k")}
		call := func(n int64) {
			m := sentUpdate("px", n, time.Now(), 1)
			m.InstanceID, m.Orchestration = in.InstanceID, perdure.EntityOrchestrationName("steady")
			h.send(m)
			time.Sleep(500 * time.Millisecond)
		}
		go func() {
			for n := range int64(10) {
				call(n + 1)
			}
			h.send(provider.Message{Kind: provider.MessageCancel, InstanceID: in.InstanceID, Reason: "requested"})
			for n := range int64(30) {
				call(n + 11)
			}
		}()
		h.serveFor(18 * time.Second)
		h.wantStatus(in, provider.StatusCancelled)
		h.serveFor(time.Hour)
		responses := map[string]int{}
		for _, m := range h.messagesTo("px") {
			if m.Error == nil {
				responses["done"]++
			} else {
				responses[m.Error.Type+m.Error.Reason]++
			}
		}
		if responses["done"] != 10 ||
			responses[history.TypeUpdateRejected+history.RejectedByValidator]+responses[history.TypeEnded] != 30 {
			t.Errorf("got responses %v, want 10 results and 30 rejections", responses)
		}
	})
}

// A call that was sent after the purge of an entity starts a new entity. The call may arrive late, and the ID may have
// refused a start in between.
func TestR31_lateCallSentAfterAPurge_startsAnEntity(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		h.send(sentUpdate("px", 1, time.Now(), 1))
		h.turns()
		h.purge(sumInstance.InstanceID)
		h.serveFor(time.Hour)
		sent := time.Now()
		time.Sleep(time.Hour)
		h.send(provider.Message{
			Kind: provider.MessageCancel, InstanceID: sumInstance.InstanceID, StartID: "s",
			Parent: &history.Parent{InstanceID: "i-1", ExecutionID: "px", EventID: 7},
		})
		h.turns()
		h.send(sentUpdate("qx", 1, sent, 4))
		h.turns()
		h.wantSum(`{"Total":4,"Operations":1}`)
	})
}
