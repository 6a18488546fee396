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

// Interleaving: two processes refuse an event each, of one id at the same moment. Both are written down, and not for ever.
func TestR24TwoRefusalsAtOnceAreBothWrittenDown(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		one := &provider.InboxMessage{Message: eventFor("px", 1, time.Now())}
		other := &provider.InboxMessage{Message: eventFor("qx", 2, time.Now())}
		met := false
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if c.Operation == "TransactWriteItems" && !met {
				met = true
				if err := h.Provider.RejectEvents(ctx, "", other); err != nil {
					t.Error(err)
				}
			}
			return next()
		})
		for range 2 { // it is there already the second time: it is replaced, and not created
			if err := h.Provider.RejectEvents(ctx, "", one); err != nil {
				t.Fatal(err)
			}
			met, one.Parent.EventID, other.Parent.EventID = false, 7, 7
		}
		refused := must(h.Provider.ReadRejectedEvents(ctx, "c"))
		if !refused.Has(&one.Message) || !refused.Has(&other.Message) {
			t.Errorf("written down is %v", refused)
		}
		ttl, err := strconv.ParseInt(h.item("i#c", "e")["ttl"].(*types.AttributeValueMemberN).Value, 10, 64)
		if left := time.Until(time.Unix(ttl, 0)); err != nil || left < 28*24*time.Hour || left > 31*24*time.Hour {
			t.Errorf("it is kept for %v, %v", left, err)
		}
	})
}

// Of an instance that is being deleted all but the tombstone is done: nobody takes the event any more.
func TestR24AnEventForAnInstanceThatIsBeingDeleted(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		h.startAs("c", "hears", hearing{Left: 9})
		h.turns()
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if in, ok := c.Input.(*dynamodb.PutItemInput); ok && in.Item["deleted"] != nil {
				return errors.New("the process is gone")
			}
			return next()
		})
		if err := h.Provider.DeleteInstance(ctx, "c", true); err == nil {
			t.Fatal("the deletion has come to its end")
		}
		h.interfere(nil)
		sender := h.start("tells", tells{To: "c", Events: 1})
		h.turns()
		h.wantOutput(sender, `"1 absent"`)
	})
}
