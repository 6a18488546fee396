package dispatch_test

import (
	"context"
	"testing"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// Interleavings: the turn behind a resume takes its process down again and again. The instance is blocked as poison, with the resume in the dead letters. It is
// paused then, and goes on: it is blocked still, and a build in which that is mended takes what was parked.
func TestR25ATurnBehindAResumeThatTakesItsProcessDownBlocksItsInstance(t *testing.T) {
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
			t.Fatalf("it is %s: %+v", now.Status, now.Diagnosis)
		}
		ran := f.ran.Load()

		h.pause(in, "p2")
		h.serveFor(2 * time.Hour)
		h.wantPaused(in)
		h.raise(in, "f", 2)
		h.serveFor(2 * time.Hour)
		h.wantPaused(in)
		if more := f.ran.Load() - ran; more > 0 {
			t.Errorf("its code ran %d times", more)
		}
		h.resume(in, "r2")
		h.serveFor(2 * time.Hour)
		if now := h.read(in); now.Status != provider.StatusBlocked || now.Diagnosis.Type != history.TypePoison {
			t.Fatalf("it is %s: %+v", now.Status, now.Diagnosis)
		}
		if more := f.ran.Load() - ran; more != 1 {
			t.Errorf("its code ran %d times, want once", more)
		}
		if bodies, _ := h.dead(h.Provider.Config().DeadLetters[provider.QueueInbox]); len(bodies) != 2 {
			t.Errorf("%d messages are in the dead letters, want both resumes", len(bodies))
		}
		f.alive.Store(true)
		h.resumes(ctx, in, f)
	})
}
