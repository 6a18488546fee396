package dispatch_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

func TestR11AStartIsOneTransaction(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("chain", 1)
		var wrote []string
		for _, c := range h.made() {
			if tx, ok := c.Input.(*dynamodb.TransactWriteItemsInput); ok {
				for _, w := range tx.TransactItems {
					wrote = append(wrote, text(w.Put.Item, "pk")+" "+text(w.Put.Item, "sk"))
				}
			}
		}
		if len(wrote) != 2 || wrote[0] != "i#i-1 i" || wrote[1] != "x#"+in.ExecutionID+" h#0000000000" {
			t.Errorf("one transaction of instance and first segment, got %v", wrote)
		}
	})
}

// Interleaving: the client dies, or its wake is lost, between the transaction and the wake; it starts again with the same
// key. That is the same start, and it must wake what nobody has woken.
func TestR11ItsOwnStartIsWokenAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if _, send := c.Input.(*sqs.SendMessageBatchInput); send {
				return errors.New("the client's connection is gone")
			}
			return next()
		})
		s := provider.Start{InstanceID: "i-1", Name: "chain", Input: encoded(t, 1), StartID: "key-1"}
		if _, err := h.Provider.StartOrchestration(ctx, s); err == nil {
			t.Fatal("the wake was lost, and the client was not told")
		}
		h.interfere(nil)
		in, err := h.Provider.StartOrchestration(ctx, s)
		if err != nil {
			t.Fatal(err)
		}
		if end := h.finish(in); string(end.Output) != "1" {
			t.Errorf("ended with %s", end.String())
		}
	})
}

func TestR11AnotherStartOfTheSameIDIsRefused(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		in := h.start("nothing", 1)
		again := provider.Start{InstanceID: in.InstanceID, Name: "nothing", Input: encoded(t, 2), StartID: "another"}
		if _, err := h.Provider.StartOrchestration(ctx, again); !errors.Is(err, provider.ErrAlreadyExists) {
			t.Errorf("while it runs: %v", err)
		}
		if end := h.finish(in); string(end.Output) != "1" {
			t.Errorf("ended with %s", end.String())
		}
		if _, err := h.Provider.StartOrchestration(ctx, again); !errors.Is(err, provider.ErrAlreadyExists) {
			t.Errorf("when it is over: %v", err)
		}
	})
}

// Interleaving: the wake is lost, and another message comes. It runs the first turn.
func TestR11AnyMessageRunsTheFirstTurn(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("chain", 1)
		wake := h.receive(h.Provider.Hub().InboxURL)
		_ = h.Provider.DeleteRecords(h.t.Context(), provider.QueueInbox, wake...)
		h.complete(in, 0, 99) // of nothing that was ever scheduled
		if failed := h.turn(0); len(failed) > 0 || len(h.workItems()) != 1 {
			t.Errorf("failed %v, or the body did not start", failed)
		}
	})
}

// Interleaving: the client is gone for good after the transaction. The watch finds the instance pending after two minutes.
func TestR11TheWatchWakesWhatIsStillPending(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		in := h.start("chain", 1)
		wake := h.receive(h.Provider.Hub().InboxURL)
		_ = h.Provider.DeleteRecords(ctx, provider.QueueInbox, wake...)
		if woken, err := h.Timekeeper.Watch(ctx); err != nil || woken != 0 {
			t.Errorf("at once: woke %d, %v", woken, err)
		}
		time.Sleep(2*time.Minute + time.Second)
		if woken, err := h.Timekeeper.Watch(ctx); err != nil || woken != 1 {
			t.Errorf("after two minutes: woke %d, %v", woken, err)
		}
		if end := h.finish(in); string(end.Output) != "1" {
			t.Errorf("ended with %s", end.String())
		}
		if woken, err := h.Timekeeper.Watch(ctx); err != nil || woken != 0 {
			t.Errorf("when it is over: woke %d, %v", woken, err)
		}
	})
}
