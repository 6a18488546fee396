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

// Interleaving:
//  1. A zombie and a live session hold a start (consumed), its repetition, and an outcome. The live session
//     redispatches for the start.
//  2. The zombie commits the turn of the outcome and crashes before it sends.
//  3. For the repetition, the live session finds that the instance exists, and reads a head that covers the outcome.
//     Only a second redispatch sends the outputs of that turn.
func TestR4_repeatedStartFindsInstance_redispatchesAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Environments: 2}, func(ctx context.Context, h *hub) {
		start := provider.Message{
			Kind: provider.MessageStart, InstanceID: "i-1", Name: "chain", Input: encoded(t, 2), StartID: "start-1",
		}
		if err := h.Provider.EnqueueForOrchestrator(ctx, start); err != nil {
			t.Fatal(err)
		}
		// the process crashes before it deletes the records
		h.Orchestrators[0].HandleRecords(ctx, h.receive("sim://inbox.fifo"))
		h.workItems()
		time.Sleep(6 * time.Minute) // longer than the deduplication interval of SQS
		if err := h.Provider.EnqueueForOrchestrator(ctx, start); err != nil {
			t.Fatal(err)
		}
		in, err := h.Provider.ReadInstance(ctx, "i-1")
		if err != nil {
			t.Fatal(err)
		}
		h.complete(in, 1, 3)
		batch := h.receive("sim://inbox.fifo")
		stale, done := false, false
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if send, ok := c.Input.(*sqs.SendMessageBatchInput); stale && ok &&
				strings.Contains(*send.Entries[0].MessageBody, `"activityId":6`) {
				return errors.New("the zombie crashed between commit and dispatch")
			}
			if createsInstance(c) && !done {
				stale, done = true, true
				h.Orchestrators[0].HandleRecords(ctx, batch)
				stale = false
			}
			return next()
		})
		failed := h.Orchestrators[1].HandleRecords(ctx, batch)
		h.interfere(nil)
		if !done {
			t.Fatal("the repeated start was not tried")
		}
		h.acknowledge(batch, failed)
		if end := h.finish(in); string(end.Output) != "2" {
			t.Errorf("ended with %s, want output 2", end.String())
		}
	})
}

// Interleaving:
//  1. Two sessions hold one start message, because the first was frozen.
//  2. The first creates the instance, commits its first turn, and crashes before it sends.
//  3. The second finds that the instance exists, and must redispatch that turn: no other message causes a redispatch.
func TestR4_startFindsInstance_redispatchesItsTurn(t *testing.T) {
	t.Parallel()
	for _, delivery := range []int{1, 3} {
		t.Run(fmt.Sprint("delivery ", delivery), func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{Environments: 2}, func(ctx context.Context, h *hub) {
				start := provider.Message{
					Kind: provider.MessageStart, InstanceID: "i-1", Name: "chain", Input: encoded(t, 2),
					StartID: "start-1",
				}
				if err := h.Provider.EnqueueForOrchestrator(ctx, start); err != nil {
					t.Fatal(err)
				}
				var batch []provider.Record
				for range delivery {
					time.Sleep(2 * time.Minute)
					batch = h.receive("sim://inbox.fifo")
				}
				stale, done := false, false
				h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
					if _, sends := c.Input.(*sqs.SendMessageBatchInput); stale && sends {
						return errors.New("the zombie crashed between commit and dispatch")
					}
					if createsInstance(c) && !done {
						stale, done = true, true
						h.Orchestrators[0].HandleRecords(ctx, batch)
						stale = false
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
					t.Errorf("ended with %s, want output 2", end.String())
				}
				h.checkIdle()
			})
		})
	}
}
