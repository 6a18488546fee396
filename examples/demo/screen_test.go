package main

import (
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
)

func TestScreenEvent_cancelledCall_showsTheReason(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]history.Failure{
		"cancelled: select_loser": {Type: history.TypeCancelled, Reason: "select_loser"},
		"failed: declined":        {Type: "CardDeclined", Message: "declined"},
	} {
		var out strings.Builder
		newScreen(&out).event("order-7", &history.Event{Kind: history.ActivityFailed, Error: &f})
		if got := out.String(); !strings.Contains(got, want) {
			t.Errorf("missing %q: %s", want, got)
		}
	}
}

// A missing time is shown as unknown and not used in a calculation.
func TestScreenWhy_missingTimes_areShownAsUnknown(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	base := client.Cancellation{
		Target: client.TargetActivity, ID: 3, Name: "pack", Reason: "requested", RequestedBy: "body", DecidedAt: at,
	}
	all, unseen, open := base, base, base
	all.SeenAt, all.EndedAt, all.End = at.Add(time.Second), at.Add(3*time.Second), client.OutcomeStopped
	unseen.EndedAt, unseen.End = at.Add(time.Second), client.OutcomeNeverStarted
	open.SeenAt = at.Add(time.Second)
	for want, c := range map[string]client.Cancellation{
		"(requested) by the orchestration, observed by the worker after 1s, ended: stopped after 2s": all,
		"not reported by the worker, ended: " + string(client.OutcomeNeverStarted):                   unseen,
		"observed by the worker after 1s, not ended yet":                                             open,
		"not reported by the worker, not ended yet":                                                  base,
	} {
		var out strings.Builder
		newScreen(&out).why("order-7", []client.Cancellation{c})
		if got := out.String(); !strings.Contains(got, want) ||
			strings.Contains(got, "-") && strings.Contains(got, "h47m") {
			t.Errorf("missing %q:\n%s", want, got)
		}
	}
}
