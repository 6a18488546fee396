package dispatch_test

import (
	"context"
	"testing"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// Interleaving:
//  1. The turn after a resume kills its process repeatedly. The instance is blocked as poison, and the resume becomes a
//     dead letter.
//  2. The instance is paused and resumed. It is still blocked.
//  3. A fixed build consumes the parked inputs.
func TestR25_turnAfterAResumeKillsItsProcess_blocksItsInstance(t *testing.T) {
	t.Parallel()
	f := &fatal{}
	inBubble(t, simhub.Options{Registry: f.registry(), Intercept: f.crash()}, func(ctx context.Context, h *hub) {
		in := h.start("fatal", 1)
		h.serveFor(time.Minute)
		h.pause(in, "p1")
		h.raise(in, "e", 1)
		h.serveFor(time.Minute)
		h.wantPaused(in)
		h.resume(in, "r1")
		h.serveFor(2 * time.Hour)
		if now := h.read(in); now.Status != provider.StatusBlocked || now.Diagnosis.Type != history.TypePoison {
			t.Fatalf("got status %s, diagnosis %+v, want Blocked as poison", now.Status, now.Diagnosis)
		}
		ran := f.ran.Load()

		h.pause(in, "p2")
		h.serveFor(2 * time.Hour)
		h.wantPaused(in)
		h.raise(in, "f", 2)
		h.serveFor(2 * time.Hour)
		h.wantPaused(in)
		if more := f.ran.Load() - ran; more > 0 {
			t.Errorf("code ran %d more times, want 0", more)
		}
		h.resume(in, "r2")
		h.serveFor(2 * time.Hour)
		if now := h.read(in); now.Status != provider.StatusBlocked || now.Diagnosis.Type != history.TypePoison {
			t.Fatalf("got status %s, diagnosis %+v, want Blocked as poison", now.Status, now.Diagnosis)
		}
		if more := f.ran.Load() - ran; more != 1 {
			t.Errorf("code ran %d more times, want 1", more)
		}
		if bodies, _ := h.dead(h.Provider.Config().DeadLetters[provider.QueueInbox]); len(bodies) != 2 {
			t.Errorf("got %d dead letters, want both resumes", len(bodies))
		}
		f.alive.Store(true)
		h.resumes(ctx, in, f)
	})
}
