package dispatch_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// eventFor returns an event for "c" that an execution has sent at a time of its clock.
func eventFor(executionID string, n int, at time.Time) provider.Message {
	const eventID = 3
	return provider.Message{
		Kind: provider.MessageEventSent, InstanceID: "c", Name: "add", EventID: provider.StartID(executionID, eventID),
		Data: history.Payload{byte('0' + n)}, SentAt: &at,
		Parent: &history.Parent{InstanceID: "p", ExecutionID: executionID, EventID: eventID},
	}
}

// afterRefusal runs f after an event was rejected because it had no receiver, and the receiver has started. SQS no
// longer stores the deduplication ID of the event.
func afterRefusal(
	t *testing.T, ahead time.Duration, f func(h *hub, receiver provider.Instance, again provider.Message),
) {
	t.Helper()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		refused := eventFor("px", 1, time.Now().Add(ahead))
		h.send(refused)
		h.turns()
		receiver := h.startAs("c", "receiver", receiveInput{Left: 2})
		h.turns()
		time.Sleep(6 * time.Minute)
		f(h, receiver, refused)
	})
}

// The sender's clock is ahead. By this clock, the receiver had its first turn long before the event was sent, although
// the event was refused before that turn.
func TestR24_senderClockAhead_refusedEventNeverArrives(t *testing.T) {
	t.Parallel()
	afterRefusal(t, 4*time.Minute, func(h *hub, receiver provider.Instance, again provider.Message) {
		h.send(again)
		h.turns()
		if n := countRaised(h.events(receiver)); n != 0 {
			t.Error("receiver has an event that was reported as undelivered")
		}
	})
}

// A batch has a copy of a refused event between other events. The other events arrive.
func TestR24_batchHasACopyOfARefusedEvent_otherEventsArrive(t *testing.T) {
	t.Parallel()
	afterRefusal(t, 0, func(h *hub, receiver provider.Instance, again provider.Message) {
		h.send(eventFor("qx", 2, time.Now()))
		h.send(again)
		h.send(eventFor("rx", 3, time.Now()))
		if failed := h.turn(0); len(failed) > 0 {
			t.Errorf("got %d failed messages, want 0", len(failed))
		}
		h.turns()
		h.wantOutput(receiver, "[2,3]")
	})
}

// A recent receiver reads refusals once, although each batch is a separate turn, and each event may start another
// execution.
func TestR24_recentReceiver_readsRefusalsOnce(t *testing.T) {
	t.Parallel()
	for _, anew := range []bool{false, true} {
		inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
			h.startAs("c", "receiver", receiveInput{Left: 9, Continues: anew})
			h.turns()
			reads := 0
			h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
				in, ok := c.Input.(*dynamodb.GetItemInput)
				if ok && in.Key["sk"].(*types.AttributeValueMemberS).Value == "e" {
					reads++
				}
				return next()
			})
			for n, x := range []string{"px", "qx", "rx"} {
				h.send(eventFor(x, n, time.Now()))
				h.turns()
			}
			if reads != 1 {
				t.Errorf("got %d reads of refusals, want 1", reads)
			}
		})
	}
}
