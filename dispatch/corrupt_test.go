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

// An instance whose history cannot be read, and to which messages come all the time: once it is shown as blocked each batch is set aside in its
// first delivery, in that build. Another build tries them again, since it may be the one that can read the history.
func TestACorruptInstanceThatIsBusyIsSetAsideAtOnce(t *testing.T) {
	t.Parallel()
	const many = 200
	inBubble(t, simhub.Options{Registry: sleeper(1, "add"), CacheBytes: -1}, func(_ context.Context, h *hub) {
		in := h.start("sleeper", 0)
		h.turn(0)
		h.damage(h.item("x#"+in.ExecutionID, "h#0000000001"))
		h.raise(in, "e", 5)
		h.serveFor(2 * time.Hour)
		if now := h.read(in); now.Status != provider.StatusBlocked || now.Diagnosis.Type != history.TypeCorrupt || now.BlockedBy != "test" {
			t.Fatalf("it is %s in %q: %+v", now.Status, now.BlockedBy, now.Diagnosis)
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
					t.Fatalf("a message is delivered %d times", r.ReceiveCount)
				}
			}
			if failed := h.Orchestrators[0].HandleRecords(t.Context(), records); len(failed) > 0 {
				t.Fatalf("%d messages failed", len(failed))
			}
			if err := h.Provider.DeleteRecords(t.Context(), provider.QueueInbox, records...); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("%d messages were set aside in %d batches", many, batches)
		if batches > many/10 {
			t.Errorf("it took %d batches", batches)
		}
		later := h.orchestrator(sleeper(1, "add"), "later")
		h.raise(in, "late", 1)
		if failed := h.give(later); len(failed) != 1 {
			t.Errorf("%d messages failed in another build, want the one, to be tried again", len(failed))
		}
	})
}
