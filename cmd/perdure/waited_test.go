package main

import (
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/history"
)

// status shows a cancelled call with WaitForCancellation until the call has ended.
func TestStatus_waitForCancellation_isPendingUntilEnd(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.mustRun("start", "fulfil", "--id", "order-7", "--input", "7")
	h.Append("order-7",
		at(-2*time.Minute, history.Event{Kind: history.TurnStarted, Version: "1.2.0", BuildID: "b-42"}),
		// #3
		at(-2*time.Minute, history.Event{
			Kind: history.ActivityScheduled, Name: "charge", Cancel: &history.CancelDetails{WaitForCancellation: true},
		}),
		at(-90*time.Second, history.Event{
			Kind: history.ActivityCancelRequested, SourceEventID: 3, Reason: "requested",
			RequestedBy: history.RequestedByEngine,
		}),
	)
	want := "2m00s     —  cancelled\n      cancelled 1m30s ago (requested), waiting for its end\n" //nolint:dupword // two lines
	if got := h.mustRun("status", "order-7"); !strings.Contains(got, want) {
		t.Errorf("before: %s", got)
	}
	if got := h.mustRun("status", "order-7", "--json"); !strings.Contains(got,
		`"cancelledAt":"2026-07-01T02:58:30Z","cancelReason":"requested"`) {
		t.Errorf("before: %s", got)
	}
	h.Append("order-7", at(-time.Minute, history.Event{
		Kind: history.ActivityFailed, Attempt: 1, SourceEventID: 3,
		Cancel: &history.CancelDetails{Outcome: history.OutcomeAbandoned},
		Error:  &history.Failure{Type: history.TypeCancelled},
	}))
	if got := h.mustRun("status", "order-7"); !strings.Contains(got, "No pending tasks") {
		t.Errorf("after: %s", got)
	}
}

// For a call with WaitForCancellation, why and history show the times of the cancel request and of its observation, and
// the outcome of the call.
func TestWhyAndHistory_waitForCancellation_printOutcome(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	seen := began.Add(1900 * ms)
	gone := &history.Failure{Type: history.TypeCancelled, Reason: "requested"}
	for name, tt := range map[string]struct {
		end          history.Event
		why, history string
	}{
		"worker lost": {
			history.Event{
				Kind: history.ActivityFailed, Attempt: 1, Error: gone,
				Cancel: &history.CancelDetails{Outcome: history.OutcomeWorkerLost, SeenAt: &seen},
			},
			"+700ms  worker lost, reported after 30.1s\n", "cancel observed 2026-07-01T03:00:01Z ended worker_gone",
		},
		"no report": {
			history.Event{
				Kind: history.ActivityFailed, Error: &history.Failure{Type: history.TypeTimeout},
				Cancel: &history.CancelDetails{Outcome: history.OutcomeTimedOut},
			},
			"—  timed out without a report after 30.8s\n", "ended timed_out",
		},
		"never started": {
			history.Event{
				Kind: history.ActivityFailed, Attempt: 1, Error: gone,
				Cancel: &history.CancelDetails{Outcome: history.OutcomeNeverStarted, SeenAt: &seen},
			},
			"+700ms  never started\n", "ended never_began",
		},
		"abandoned": {
			history.Event{
				Kind: history.ActivityFailed, Attempt: 1, Error: gone,
				Cancel: &history.CancelDetails{Outcome: history.OutcomeAbandoned, SeenAt: &seen},
			},
			"+700ms  ABANDONED after 30.1s\n", "ended given_up",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			h.mustRun("start", "fulfil", "--id", "order-7", "--input", "7")
			h.Append("order-7",
				at(0, history.Event{Kind: history.TurnStarted, Version: "1.2.0", BuildID: "b-42"}),
				// #3
				at(0, history.Event{
					Kind: history.ActivityScheduled, Name: "charge",
					Cancel: &history.CancelDetails{WaitForCancellation: true},
				}),
				at(1200*ms, history.Event{
					Kind: history.ActivityCancelRequested, SourceEventID: 3, Reason: "requested",
					RequestedBy: history.RequestedByEngine,
				}),
			)
			if got := h.mustRun("why", "order-7"); !strings.Contains(got, "—  not ended, or unknown\n") {
				t.Errorf("why, before: %s", got)
			}
			tt.end.SourceEventID = 3
			h.Append("order-7", at(32*time.Second, tt.end))
			if got := h.mustRun("why", "order-7"); !strings.Contains(got, "  +1.20s  engine        requested  ") ||
				!strings.Contains(got, tt.why) {
				t.Errorf("why, after: %s", got)
			}
			if got := h.mustRun("history", "order-7"); !strings.Contains(got, "waits for cancellation") ||
				!strings.Contains(got, tt.history) {
				t.Errorf("history: %s", got)
			}
		})
	}
}
