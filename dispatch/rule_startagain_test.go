package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// Interleaving: a zombie and a live session hold [a start (covered), its repeat, an outcome]. The live one redispatches for the
// start; the zombie commits the turn of the outcome and dies before it sends. The live one finds the instance there when it comes
// to the repeat, and so reads a head that covers the outcome: only a second redispatch sends what its turn decided.
func TestR4AStartThatIsFoundThereRedispatchesAnew(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Environments: 2}, func(ctx context.Context, h *hub) {
		start := provider.Message{Kind: provider.MessageStart, InstanceID: "i-1", Name: "chain", Input: encoded(t, 2), StartID: "start-1"}
		if err := h.Provider.EnqueueForOrchestrator(ctx, start); err != nil {
			t.Fatal(err)
		}
		h.Orchestrators[0].HandleRecords(ctx, h.receive("sim://inbox.fifo")) // dies before its records are deleted
		h.workItems()
		time.Sleep(6 * time.Minute) // longer than SQS knows a repeat
		if err := h.Provider.EnqueueForOrchestrator(ctx, start); err != nil {
			t.Fatal(err)
		}
		in, err := h.Provider.ReadInstance(ctx, "i-1")
		if err != nil {
			t.Fatal(err)
		}
		h.complete(in, 1, 3)
		batch := h.receive("sim://inbox.fifo")
		zombie, done := false, false
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if send, ok := c.Input.(*sqs.SendMessageBatchInput); zombie && ok && strings.Contains(*send.Entries[0].MessageBody, `"activityId":6`) {
				return errors.New("the zombie died between commit and dispatch")
			}
			if createsInstance(c) && !done {
				zombie, done = true, true
				h.Orchestrators[0].HandleRecords(ctx, batch)
				zombie = false
			}
			return next()
		})
		failed := h.Orchestrators[1].HandleRecords(ctx, batch)
		h.interfere(nil)
		if !done {
			t.Fatal("the repeat of the start was not tried")
		}
		h.acknowledge(batch, failed)
		if end := h.finish(in); string(end.Output) != "2" {
			t.Errorf("ended with %s", end.String())
		}
	})
}

// Interleaving: two sessions hold one start, the second since the first stood still. The first makes the instance, commits its first turn and dies before it
// sends. The second finds the instance there, whose turn this message has led to: no other message leads back to it.
func TestR4AStartThatIsFoundThereLeadsBackToItsTurn(t *testing.T) {
	t.Parallel()
	for _, delivery := range []int{1, 3} {
		t.Run(fmt.Sprint("delivery ", delivery), func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{Environments: 2}, func(ctx context.Context, h *hub) {
				start := provider.Message{Kind: provider.MessageStart, InstanceID: "i-1", Name: "chain", Input: encoded(t, 2), StartID: "start-1"}
				if err := h.Provider.EnqueueForOrchestrator(ctx, start); err != nil {
					t.Fatal(err)
				}
				var batch []provider.Record
				for range delivery {
					time.Sleep(2 * time.Minute)
					batch = h.receive("sim://inbox.fifo")
				}
				zombie, done := false, false
				h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
					if _, sends := c.Input.(*sqs.SendMessageBatchInput); zombie && sends {
						return errors.New("the zombie died between commit and dispatch")
					}
					if createsInstance(c) && !done {
						zombie, done = true, true
						h.Orchestrators[0].HandleRecords(ctx, batch)
						zombie = false
					}
					return next()
				})
				failed := h.Orchestrators[1].HandleRecords(ctx, batch)
				h.interfere(nil)
				if !done {
					t.Fatal("the start was not tried")
				}
				h.acknowledge(batch, failed)
				in, err := h.Provider.ReadInstance(ctx, "i-1")
				if err != nil {
					t.Fatal(err)
				}
				if end := h.finish(in); string(end.Output) != "2" {
					t.Errorf("ended with %s", end.String())
				}
				h.checkRest()
			})
		})
	}
}
