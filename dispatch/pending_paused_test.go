package dispatch_test

import (
	"context"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/simhub"
)

// The instance is paused while its activity is pending. Timeouts continue, and results from the token holder are parked
// until the resume.
func TestR26_paused_resultOfTokenHolderIsParked(t *testing.T) {
	t.Parallel()
	withTokenHub(t, simhub.Options{}, func(ctx context.Context, a *tokenHub) {
		in := a.begin(question{
			StartToClose: 20 * time.Hour, Heartbeat: 5 * time.Minute, ScheduleToClose: 30 * time.Hour,
			Every: time.Minute,
		})
		while := func(paused func()) {
			t.Helper()
			if err := a.client.Pause(ctx, in.InstanceID, ""); err != nil {
				t.Fatal(err)
			}
			a.serveFor(time.Minute)
			paused()
			if err := a.client.Resume(ctx, in.InstanceID, ""); err != nil {
				t.Fatal(err)
			}
			a.serveFor(3 * time.Minute)
		}

		while(func() { a.beatEvery(ctx, a.client, a.token(0), time.Minute, 8*time.Hour) })
		a.wantOpen(in)
		if n := len(a.passedTokens()); n != 1 {
			t.Errorf("got %d runs despite heartbeats, want 1", n)
		}
		while(func() { a.serveFor(3 * time.Minute) }) // attempts continue during a pause (R14)
		if n := len(a.passedTokens()); n != 2 {
			t.Fatalf("got %d runs, want 2 after the heartbeat timeout: %+v", n, a.passedTokens())
		}
		// shortly before the heartbeat timeout
		if _, err := a.client.HeartbeatActivity(ctx, a.token(1), nil); err != nil {
			t.Fatal(err)
		}
		while(func() {
			if err := a.complete(1, "while it is paused"); err != nil {
				t.Fatal(err)
			}
			a.serveFor(time.Hour)
			a.wantOpen(in)
		})
		a.wantEnd(in, "while it is paused")
		a.serveFor(31 * time.Hour)
		a.checkRest()
	})
}
