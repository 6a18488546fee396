package dispatch_test

import (
	"context"
	"testing"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// Interleaving: an output is refused, and the process dies before that is recorded; its message comes to the dead letters, and is picked up behind
// the order to go on. What leads back to the output is in that batch, so its failure is recorded before the message is done with.
func TestR25WhatIsRefusedAsAnInstanceGoesOnIsRecorded(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("no-queue", 1)
		commits := 0
		h.fault = func(_ context.Context, c simaws.Call, next func() error) error {
			if c.Operation == "PutItem" {
				if commits++; commits > 1 {
					return simhub.ErrFailed
				}
			}
			return next()
		}
		if failed := h.turn(0); len(failed) != 1 {
			t.Fatalf("%d messages failed, want the wake", len(failed))
		}
		h.fault = nil
		time.Sleep(10 * time.Minute)
		h.loseWake()
		h.pause(in, "p1")
		h.turn(0)
		h.wantPaused(in)

		h.resume(in, "r1")
		h.send(provider.Message{Kind: provider.MessageWake, InstanceID: in.InstanceID, PickedUp: &provider.PickedUp{Record: "lost", Times: 1}})
		h.turn(0)
		if end := h.finish(in); end.Kind != history.OrchestrationCompleted {
			t.Errorf("ended with %s", end.String())
		}
		h.checkRest()
	})
}
