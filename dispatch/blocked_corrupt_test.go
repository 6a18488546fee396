package dispatch_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// An instance with an unreadable history receives many messages. Once the instance is blocked in a build, that build
// parks each batch at its first delivery. Another build retries the messages, because it may be able to read the
// history.
func TestBlocked_corruptAndBusy_parksAtTheFirstDelivery(t *testing.T) {
	t.Parallel()
	const many = 200
	inBubble(t, simhub.Options{Registry: sleeper(1, "add"), CacheBytes: -1}, func(_ context.Context, h *hub) {
		in := h.start("sleeper", 0)
		h.turn(0)
		h.damage(h.item("x#"+in.ExecutionID, "h#0000000001"))
		h.raise(in, "e", 5)
		h.serveFor(2 * time.Hour)
		if now := h.read(in); now.Status != provider.StatusBlocked || now.Diagnosis.Type != history.TypeCorrupt ||
			now.BlockedBy != "test" {
			t.Fatalf("the instance is %s in build %q with diagnosis %+v", now.Status, now.BlockedBy, now.Diagnosis)
		}
		for n := range many {
			h.raise(in, fmt.Sprint("busy-", n), n)
		}
		batches := 0
		for ; batches < many; batches++ {
			records := h.receive(h.Provider.Config().InboxURL)
			if len(records) == 0 {
				break
			}
			for _, r := range records {
				if r.ReceiveCount > 1 {
					t.Fatalf("got delivery %d of a message, want 1", r.ReceiveCount)
				}
			}
			if failed := h.Orchestrators[0].HandleRecords(t.Context(), records); len(failed) > 0 {
				t.Fatalf("got %d failed messages, want none", len(failed))
			}
			if err := h.Provider.DeleteRecords(t.Context(), provider.QueueInbox, records...); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("parked %d messages in %d batches", many, batches)
		if batches > many/10 {
			t.Errorf("got %d batches, want at most %d", batches, many/10)
		}
		later := h.orchestrator(sleeper(1, "add"), "later")
		h.raise(in, "late", 1)
		if failed := h.passRecords(later); len(failed) != 1 {
			t.Errorf("got %d failed messages in another build, want 1 that is retried", len(failed))
		}
	})
}
