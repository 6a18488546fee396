package dispatch_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// Interleaving: two processes refuse one event each for the same ID concurrently. Both refusals are recorded, and
// expire.
func TestR24_concurrentRefusals_areBothRecorded(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		one := &provider.InboxMessage{Message: eventFor("px", 1, time.Now())}
		other := &provider.InboxMessage{Message: eventFor("qx", 2, time.Now())}
		raced := false
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if c.Operation == "TransactWriteItems" && !raced {
				raced = true
				if err := h.Provider.RejectEvents(ctx, "", other); err != nil {
					t.Error(err)
				}
			}
			return next()
		})
		for range 2 { // the second time the item exists and is replaced
			if err := h.Provider.RejectEvents(ctx, "", one); err != nil {
				t.Fatal(err)
			}
			raced, one.Parent.EventID, other.Parent.EventID = false, 7, 7
		}
		refused := must(h.Provider.ReadRejectedEvents(ctx, "c"))
		if !refused.Has(&one.Message) || !refused.Has(&other.Message) {
			t.Errorf("got refusals %v, want both", refused)
		}
		ttl, err := strconv.ParseInt(h.item("i#c", "e")["ttl"].(*types.AttributeValueMemberN).Value, 10, 64)
		if left := time.Until(time.Unix(ttl, 0)); err != nil || left < 28*24*time.Hour || left > 31*24*time.Hour {
			t.Errorf("got a lifetime of %v, error %v, want about 30 days", left, err)
		}
	})
}

// The deletion of an instance is complete except for its tombstone. The instance receives no more events.
func TestR24_receiverIsBeingDeleted_eventIsRefused(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		h.startAs("c", "receiver", receiveInput{Left: 9})
		h.turns()
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if in, ok := c.Input.(*dynamodb.PutItemInput); ok && in.Item["deleted"] != nil {
				return errors.New("process crashed")
			}
			return next()
		})
		if err := h.Provider.DeleteInstance(ctx, "c", true); err == nil {
			t.Fatal("the deletion did not fail")
		}
		h.interfere(nil)
		sender := h.start("sender", sendInput{To: "c", Events: 1})
		h.turns()
		h.wantOutput(sender, `"1 absent"`)
	})
}
