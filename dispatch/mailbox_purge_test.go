package dispatch_test

import (
	"context"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// An ended instance has sent all its events. Its purge does not resend events, because the receiver's ID may then
// belong to another incarnation.
func TestR24_purgeOfSender_sendsNothingAgain(t *testing.T) {
	t.Parallel()
	for _, sender := range []string{"sender", "sends-and-ends"} {
		t.Run(sender, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
				h.startAs("c", "receiver", receiveInput{Left: 1})
				h.turns()
				in := h.start(sender, sendInput{To: "c", Events: 1})
				h.serveFor(time.Hour)
				if err := h.Provider.DeleteInstance(ctx, "c", false); err != nil {
					t.Fatal(err)
				}
				second := must(h.Provider.StartOrchestration(ctx, provider.Start{
					InstanceID: "c", Name: "receiver", Input: encoded(t, receiveInput{Left: 1}), StartID: "second",
				}))
				h.serveFor(time.Hour)

				sent := 0
				h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
					if sendsKind(c, provider.MessageEventSent) {
						sent++
					}
					return next()
				})
				if err := h.Provider.DeleteInstance(ctx, in.InstanceID, false); err != nil {
					t.Fatal(err)
				}
				h.serveFor(time.Hour)
				if n := countRaised(h.events(second)); n != 0 || sent != 0 {
					t.Errorf("got %d more sends of the event, and %d events at the second incarnation, want 0", sent, n)
				}
			})
		})
	}
}
