package dispatch_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simhub"
)

// A codec reports an error of half a megabyte, which exceeds an item of the table. The instance is still blocked, and
// continues later.
func TestR28_codecErrorTooLargeForItem_blocksInstance(t *testing.T) {
	t.Parallel()
	r, c := registry(), &turning{id: "turned"}
	perdure.AddOrchestration(r, "receives-long-data", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		return perdure.WaitForExternalEvent[string](ctx, "go").Await(ctx)
	})
	inBubble(t, simhub.Options{Registry: r, Codecs: []perdure.Codec{c}}, func(ctx context.Context, h *hub) {
		hub := client.New(h.Provider, client.WithCodec(c))
		id := must(hub.Start(ctx, "receives-long-data", 1))
		h.serveFor(time.Minute)
		if err := hub.RaiseEvent(ctx, id, "go", "received"); err != nil {
			t.Fatal(err)
		}
		c.fail(perdure.NonRetryable(errors.New(strings.Repeat("\x01", 500<<10))))
		h.serveFor(time.Hour)
		s := must(hub.Status(ctx, id))
		if s.Status != client.StatusBlocked || s.Failure == nil || s.Failure.Type != history.TypePayloadUnreadable {
			t.Errorf("got status %s, failure %+v, want Blocked", s.Status, s.Failure)
		}
		c.fail(nil)
		if err := hub.RaiseEvent(ctx, id, "go", "again"); err != nil {
			t.Fatal(err)
		}
		h.serveFor(time.Hour)
		if s := must(hub.Status(ctx, id)); string(s.Output) != `"received"` {
			t.Errorf("got status %s, output %s, failure %+v", s.Status, s.Output, s.Failure)
		}
	})
}
