package dispatch_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// cancelMessage is a cancel as the parent of startMessage sends it.
func cancelMessage(id, startID string) provider.Message {
	return provider.Message{
		Kind: provider.MessageCancel, InstanceID: id, StartID: startID, Reason: "parent_cancelled", RequestedBy: "parent:parent",
		Parent: &history.Parent{InstanceID: "parent", ExecutionID: "px", EventID: 3},
	}
}

// told are the messages for the parent, which is no instance here.
func (h *hub) told() (kinds []string) {
	h.t.Helper()
	items, _ := h.Provider.AdoptOrchestrationItems(h.receive(h.Provider.Hub().InboxURL))
	for _, it := range items {
		for i := range it.Messages {
			m := &it.Messages[i]
			what := string(m.Kind)
			if m.Error != nil {
				what += " " + m.Error.Type
			}
			kinds = append(kinds, what)
			_ = h.Provider.DeleteRecords(h.t.Context(), provider.QueueInbox, m.Record)
		}
	}
	return kinds
}

func (h *hub) wantTold(want ...string) {
	h.t.Helper()
	if got := h.told(); strings.Join(got, ", ") != strings.Join(want, ", ") {
		h.t.Errorf("the parent is told %q, want %q", got, want)
	}
}

// Interleaving: the cancel overtakes the start, which was sent by a function that was frozen in between. The start can then
// never succeed, and the parent is told that its child is cancelled, before or after.
func TestR16ACancelThatOvertakesTheStart(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		h.send(cancelMessage("c", "s1"))
		if failed := h.turn(0); len(failed) > 0 {
			t.Fatal("it failed")
		}
		h.wantTold("childOutcome cancelled")
		h.send(startMessage(h, "c", "s1"))
		if failed := h.turn(0); len(failed) > 0 {
			t.Fatal("the start failed")
		}
		if n := len(h.workItems()); n > 0 {
			t.Error("a cancelled child runs")
		}
		if _, err := h.Provider.ReadInstance(ctx, "c"); err == nil {
			t.Error("a cancelled child is there")
		}
	})
}

// Interleaving: both are in one batch, the cancel first, with messages that are nobody's around it.
func TestR16ACancelBeforeTheStartInOneBatch(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		c := provider.Instance{InstanceID: "c"}
		h.raise(c, "early", 1)
		h.send(cancelMessage("c", "s1"), startMessage(h, "c", "s1"), startMessage(h, "c", "s2"))
		if failed := h.turn(0); len(failed) > 0 {
			t.Fatal("it failed")
		}
		if now := h.read(c); now.StartID != "s2" || len(h.workItems()) != 1 {
			t.Errorf("instance %+v, want that of the other start", now)
		}
	})
}

// A cancel is for one start: it must not end whoever has the id instead.
func TestR16ACancelOfAnotherStartIsNotFound(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("chain", 1)
		h.turn(0)
		h.send(cancelMessage(in.InstanceID, "another"))
		if failed := h.turn(0); len(failed) > 0 {
			t.Fatal("it failed")
		}
		h.wantTold("cancelChildOutcome " + history.TypeNotFound)
		if end := h.finish(in); end.Kind != history.OrchestrationCompleted {
			t.Errorf("ended with %s", end.Kind)
		}
	})
}

// The child is over when the cancel comes: the parent is told that.
func TestR16ACancelOfAChildThatIsOver(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		m := startMessage(h, "c", "s1")
		m.Name = "nothing"
		h.send(m)
		h.turn(0)
		h.wantTold("childOutcome")
		for _, delivery := range []string{"the first", "the second"} {
			time.Sleep(6 * time.Minute) // the queue has forgotten it
			h.send(cancelMessage("c", "s1"))
			if failed := h.turn(0); len(failed) > 0 {
				t.Fatalf("%s failed", delivery)
			}
			h.wantTold("cancelChildOutcome " + history.TypeOver)
		}
	})
}
