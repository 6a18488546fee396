package dispatch_test

import (
	"context"
	"testing"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// damagedReceiver is an instance "c" whose history cannot be read, and that is shown as blocked so.
func damagedReceiver(h *hub) provider.Instance {
	h.t.Helper()
	in := h.startAs("c", "hears", hearing{Left: 9})
	h.turn(0)
	h.damage(h.item("x#"+in.ExecutionID, "h#0000000001"))
	h.raise(in, "e", 5)
	h.serveFor(2 * time.Hour)
	if now := h.read(in); now.Status != provider.StatusBlocked || now.Diagnosis.Type != history.TypeCorrupt {
		h.t.Fatalf("it is %s: %+v", now.Status, now.Diagnosis)
	}
	return in
}

// An order to terminate an instance whose history cannot be read stands behind an event of another instance: it is carried out, and the
// sender hears that nobody takes the event.
func TestR24AnEventBeforeTheEndOfADamagedInstance(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{CacheBytes: -1}, func(_ context.Context, h *hub) {
		in := damagedReceiver(h)
		sender := h.start("tells", tells{To: "c", Events: 1})
		h.turn(0)
		h.send(provider.Message{Kind: provider.MessageTerminate, InstanceID: "c"})
		h.serveFor(2 * time.Hour)
		if now := h.read(in); now.Status != provider.StatusTerminated {
			t.Errorf("the receiver is %s", now.Status)
		}
		h.wantOutput(sender, `"1 over"`)
	})
}

// That an instance is over is known without its history.
func TestR24AnEventBehindTheEndOfADamagedInstance(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{CacheBytes: -1}, func(_ context.Context, h *hub) {
		in := damagedReceiver(h)
		h.send(provider.Message{Kind: provider.MessageTerminate, InstanceID: "c"})
		h.serveFor(time.Hour)
		if now := h.read(in); now.Status != provider.StatusTerminated {
			t.Fatalf("the receiver is %s", now.Status)
		}
		sender := h.start("tells", tells{To: "c", Events: 1})
		h.serveFor(2 * time.Hour)
		h.wantOutput(sender, `"1 over"`)
	})
}
