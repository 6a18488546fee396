package main

import (
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
)

// A call that was cancelled says so, with its reason where it has no message.
func TestACancelledCallIsShownAsSuch(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]history.Failure{
		"cancelled: select_loser": {Type: history.TypeCancelled, Reason: "select_loser"},
		"failed: declined":        {Type: "CardDeclined", Message: "declined"},
	} {
		var out strings.Builder
		newScreen(&out).event("order-7", &history.Event{Kind: history.ActivityFailed, Error: &f})
		if got := out.String(); !strings.Contains(got, want) {
			t.Errorf("it lacks %q: %s", want, got)
		}
	}
}

// What is not known of a cancelled activity is said so, and never reckoned from a time that is not set.
func TestWhyShowsWhatIsKnown(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	base := client.Cancellation{Target: client.TargetActivity, ID: 3, Name: "pack", Reason: "requested", RequestedBy: "body", DecidedAt: at}
	all, unseen, open := base, base, base
	all.SeenAt, all.EndedAt, all.End = at.Add(time.Second), at.Add(3*time.Second), client.EndStopped
	unseen.EndedAt, unseen.End = at.Add(time.Second), client.EndNeverStarted
	open.SeenAt = at.Add(time.Second)
	for want, c := range map[string]client.Cancellation{
		"its worker saw it 1s later; it stopped in 2s":                              all,
		"when its worker saw it is not known; it " + string(client.EndNeverStarted): unseen,
		"its worker saw it 1s later; its end is not known yet":                      open,
		"when its worker saw it is not known; its end is not known":                 base,
	} {
		var out strings.Builder
		newScreen(&out).why("order-7", []client.Cancellation{c})
		if got := out.String(); !strings.Contains(got, want) || strings.Contains(got, "-") && strings.Contains(got, "h47m") {
			t.Errorf("it lacks %q:\n%s", want, got)
		}
	}
}
