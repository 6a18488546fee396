package dispatch_test

import (
	"context"
	"testing"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// damagedReceiver returns an instance "c" with an unreadable history and the status Blocked.
func damagedReceiver(h *hub) provider.Instance {
	h.t.Helper()
	in := h.startAs("c", "receiver", receiveInput{Left: 9})
	h.turn(0)
	h.damage(h.item("x#"+in.ExecutionID, "h#0000000001"))
	h.raise(in, "e", 5)
	h.serveFor(2 * time.Hour)
	if now := h.read(in); now.Status != provider.StatusBlocked || now.Diagnosis.Type != history.TypeCorrupt {
		h.t.Fatalf("got status %s, diagnosis %+v, want Blocked as corrupt", now.Status, now.Diagnosis)
	}
	return in
}

// A termination of an instance with an unreadable history follows an event of another instance. The instance is
// terminated, and the sender receives a refusal.
func TestR24_damagedReceiverIsTerminated_eventIsRefused(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{CacheBytes: -1}, func(_ context.Context, h *hub) {
		in := damagedReceiver(h)
		sender := h.start("sender", sendInput{To: "c", Events: 1})
		h.turn(0)
		h.send(provider.Message{Kind: provider.MessageTerminate, InstanceID: "c"})
		h.serveFor(2 * time.Hour)
		if now := h.read(in); now.Status != provider.StatusTerminated {
			t.Errorf("receiver: got status %s, want Terminated", now.Status)
		}
		h.wantOutput(sender, `"1 over"`)
	})
}

// The status shows the end of an instance whose history is unreadable.
func TestR24_damagedReceiverHasEnded_eventIsRefused(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{CacheBytes: -1}, func(_ context.Context, h *hub) {
		in := damagedReceiver(h)
		h.send(provider.Message{Kind: provider.MessageTerminate, InstanceID: "c"})
		h.serveFor(time.Hour)
		if now := h.read(in); now.Status != provider.StatusTerminated {
			t.Fatalf("receiver: got status %s, want Terminated", now.Status)
		}
		sender := h.start("sender", sendInput{To: "c", Events: 1})
		h.serveFor(2 * time.Hour)
		h.wantOutput(sender, `"1 over"`)
	})
}
