package dispatch_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// The last input that a restart copies is stored once in history, parked in ExecutionRestarted. The first turn refers
// to it if it is larger than a reference, and copies it otherwise.
func TestR30_lastInput_isStoredOnce(t *testing.T) {
	t.Parallel()
	for name, large := range map[string]bool{"large": true, "small": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := "short"
			if large {
				text = strings.Repeat("0123456789", 500)
			}
			r := registry()
			perdure.AddOrchestration(r, "one-word", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
				received, err := perdure.WaitForExternalEvent[string](ctx, "word").Await(ctx)
				return len(received), err
			})
			inBubble(t, simhub.Options{Registry: r}, func(_ context.Context, h *hub) {
				in := h.start("one-word", 0)
				h.serveFor(time.Second)
				h.send(provider.Message{
					Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "word", EventID: "e1",
					Data: encoded(t, text),
				})
				h.finish(in)
				past := h.events(in)
				again := h.restart(in.InstanceID, "again", past[lastOf(past, history.ExternalEventRaised)].ID)
				if end := h.finish(again); string(end.Output) != fmt.Sprint(len(text)) {
					t.Errorf("ended with %s, output %s, error %v", end.String(), end.Output, end.Error)
				}
				stored := h.stored(h.read(again).ExecutionID)
				parked, raised := stored[lastOf(stored, history.ExecutionRestarted)],
					stored[lastOf(stored, history.ExternalEventRaised)]
				if _, inline := parked.Inputs[0].Data.Document(); !inline || len(parked.Inputs) != 1 {
					t.Errorf("parked input: got %s, want one document", parked.Inputs[0].Data)
				}
				if _, inline := raised.Data.Document(); inline == large {
					t.Errorf("consumed input: got %.100s", raised.Data)
				}
				h.wantReplays(r, h.read(again))
				h.checkRest()
			})
		})
	}
}

// Earlier executions have more documents than a read of one event resolves. A restart has all documents, even after the
// old instance is purged.
func TestR30_documentsExceedTheReadOfAnEvent_restartHasAll(t *testing.T) {
	t.Parallel()
	const letters = 30 // of 180 KB each: more than documents.MaxResolvedBytes
	text := func(n int) string { return fmt.Sprint(n, strings.Repeat("0123456789", 18<<10)) }
	r := registry()
	perdure.AddOrchestration(r, "collects", func(ctx *perdure.OrchestrationContext, execution int) (int, error) {
		if execution == 0 {
			if _, err := perdure.CreateTimer(ctx, time.Hour).Await(ctx); err != nil {
				return 0, err
			}
			return perdure.ContinueAsNew[int](ctx, 1)
		}
		if _, err := perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx); err != nil {
			return 0, err
		}
		for n := range letters {
			got, err := perdure.WaitForExternalEvent[string](ctx, "letter").Await(ctx)
			if err != nil {
				return n, err
			}
			if got != text(n) {
				return n, fmt.Errorf("letter %d was altered: %.10s", n, got)
			}
		}
		return letters, nil
	})
	inBubble(t, simhub.Options{Registry: r}, func(_ context.Context, h *hub) {
		in := h.start("collects", 0)
		for n := range letters {
			h.send(provider.Message{
				Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "letter",
				EventID: fmt.Sprint("l", n), Data: encoded(t, text(n)),
			})
		}
		h.serveFor(2 * time.Hour)
		h.raise(in, "e1", 1)
		if end := h.finish(in); string(end.Output) != fmt.Sprint(letters) {
			t.Fatalf("ended with %s, output %s, error %v", end.String(), end.Output, end.Error)
		}
		past := h.events(h.read(in))
		shown := 0
		for _, e := range past[0].CarriedEvents {
			if _, inline := e.Data.Document(); inline {
				shown++
			}
		}
		if shown == 0 || shown == letters {
			t.Fatalf("got %d of %d letters resolved, want some but not all", shown, letters)
		}
		again := h.restart(in.InstanceID, "again", past[lastOf(past, history.ExternalEventRaised)].ID)
		h.purge(in.InstanceID)
		h.Hub = must(simhub.New(simhub.Options{Registry: r, On: h.Hub})) // processes with empty caches
		if end := h.finish(again); string(end.Output) != fmt.Sprint(letters) {
			t.Errorf("ended with %s, output %s, error %v", end.String(), end.Output, end.Error)
		}
		h.checkRest()
	})
}
