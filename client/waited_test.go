package client_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// waited returns the event e of a call with WaitForCancellation.
func waited(e history.Event) history.Event {
	e.Cancel = &history.CancelDetails{WaitForCancellation: true}
	return at(10, e)
}

// endOf returns the outcome of a cancelled call, with the time at which the worker observed the cancellation.
func endOf(e history.Event, ended string, seen int) history.Event {
	e.Cancel = &history.CancelDetails{Outcome: ended}
	if seen > 0 {
		e.Cancel.SeenAt = due(seen)
	}
	return at(40, e)
}

// A cancellation of an activity with WaitForCancellation has the outcome, and the times of the decision, the
// observation and the end. For other activities, each failure counts as stopped.
func TestCancellations_waitForCancellation_reportsOutcomeAndTimes(t *testing.T) {
	t.Parallel()
	failed := history.Event{
		Kind: history.ActivityFailed, Attempt: 1, Error: &history.Failure{Type: history.TypeCancelled},
	}
	for name, tt := range map[string]struct {
		end    history.Event
		seen   int
		unsaid bool
		left   provider.ActivityRecord
		want   client.CancelOutcome
	}{
		"never started": {
			end: endOf(failed, history.OutcomeNeverStarted, 30), seen: 30, want: client.OutcomeNeverStarted,
		},
		"abandoned": {end: endOf(failed, history.OutcomeAbandoned, 30), seen: 30, want: client.OutcomeAbandoned},
		"worker was lost": {
			end: endOf(failed, history.OutcomeWorkerLost, 30), seen: 30, want: client.OutcomeWorkerLost,
		},
		"timed out": {
			end: endOf(history.Event{Kind: history.ActivityFailed}, "", 0), want: client.OutcomeTimedOut,
		},
		"returned": {end: endOf(failed, history.OutcomeReturned, 30), seen: 30, want: client.OutcomeStopped},
		"completed": {
			end: endOf(history.Event{Kind: history.ActivityCompleted}, history.OutcomeReturned, 30), seen: 30,
			want: client.OutcomeCompleted,
		},
		"cancellation without a recorded outcome": {
			end: at(40, history.Event{Kind: history.ActivityFailed}), unsaid: true, want: client.OutcomeStopped,
		},
		"cancellation was observed, still running": {
			end: at(40, history.Event{Kind: history.TurnStarted}), left: provider.ActivityRecord{SeenAt: instant(30)},
			seen: 30,
		},
		"cancellation was observed, worker was lost": {
			end: endOf(failed, history.OutcomeWorkerLost, 30), seen: 30,
			left: provider.ActivityRecord{SeenAt: instant(30)}, want: client.OutcomeWorkerLost,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, p := setup(t)
			mustStart(t, c, "one")
			call := waited(history.Event{Kind: history.ActivityScheduled, Name: "charge"}) // #2
			if tt.unsaid {
				call.Cancel = nil
			}
			tt.end.SourceEventID, tt.left.ActivityID = 2, 2
			if tt.end.Kind == history.TurnStarted {
				tt.end.SourceEventID = 0
			}
			p.Append("one", call,
				at(20,
					history.Event{
						Kind: history.ActivityCancelRequested, SourceEventID: 2, Reason: "requested",
						RequestedBy: "engine",
					}), tt.end)
			p.SetActivityRecords("x1", tt.left)
			want := client.Cancellation{
				Target: client.TargetActivity, ID: 2, Name: "charge", Reason: "requested", RequestedBy: "engine",
				DecidedAt: instant(20), End: tt.want,
			}
			if tt.seen > 0 {
				want.SeenAt = instant(tt.seen)
			}
			if tt.want != "" {
				want.EndedAt = instant(40)
			}
			got, err := client.Collect(c.Cancellations(t.Context(), "one", ""))
			if diff := cmp.Diff([]client.Cancellation{want}, got); err != nil || diff != "" {
				t.Errorf("got error %v, mismatch (-want +got):\n%s", err, diff)
			}
		})
	}
}

// A cancelled call with WaitForCancellation stays pending until its end, with the time and the reason of the
// cancellation. A cancelled call without the option is not pending.
func TestPending_cancelledWithWaitForCancellation_staysUntilItEnds(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	mustStart(t, c, "one")
	again := &history.RetryPolicy{MaxAttempts: 9, InitialIntervalMs: 1000}
	request := func(kind history.Kind, id int64, reason string) history.Event {
		return at(20, history.Event{
			Kind: kind, SourceEventID: id, InstanceID: "s", Reason: reason, RequestedBy: "engine",
		})
	}
	p.Append("one",
		// #2
		waited(history.Event{Kind: history.ActivityScheduled, Name: "charge"}),
		// #3
		at(10, history.Event{Kind: history.ActivityScheduled, Name: "pack"}),
		// #4
		waited(history.Event{
			Kind: history.SubOrchestrationScheduled, Name: "ship", InstanceID: "s", Attempt: 1, Retry: again,
		}),
		// #5
		at(10, history.Event{Kind: history.SubOrchestrationScheduled, Name: "bill", InstanceID: "b", Attempt: 1}),
		// #6
		waited(history.Event{Kind: history.ActivityScheduled, Name: "weigh"}),
		// #7
		waited(history.Event{Kind: history.SubOrchestrationScheduled, Name: "mail", InstanceID: "m", Attempt: 1}),
		request(history.ActivityCancelRequested, 2, "requested"),
		request(history.ActivityCancelRequested, 3, "requested"),
		request(history.SubOrchestrationCancelRequested, 4, "parent_cancelled"),
		request(history.SubOrchestrationCancelRequested, 5, "parent_cancelled"),
		request(history.SubOrchestrationCancelRequested, 7, "timeout"),
	)
	child := client.PendingItem{
		Kind: client.PendingSubOrchestration, ScheduledAt: instant(10), Attempt: 1, CancelledAt: instant(20),
	}
	ship, mail := child, child
	ship.ID, ship.Name, ship.InstanceID, ship.CancelReason, ship.MaxAttempts = 4, "ship", "s", "parent_cancelled", 9
	mail.ID, mail.Name, mail.InstanceID, mail.CancelReason = 7, "mail", "m", "timeout"
	activity := client.PendingItem{Kind: client.PendingActivity, ScheduledAt: instant(10), Attempt: 1}
	charge, weigh := activity, activity
	charge.ID, charge.Name, charge.CancelledAt, charge.CancelReason = 2, "charge", instant(20), "requested"
	weigh.ID, weigh.Name = 6, "weigh"
	if diff := cmp.Diff([]client.PendingItem{charge, ship, weigh, mail}, mustPending(t, c, 0).Items); diff != "" {
		t.Errorf("before the activities end: mismatch (-want +got):\n%s", diff)
	}
	p.Append("one", // a cancelled child is not retried, and another child does not exist
		endOf(history.Event{Kind: history.ActivityFailed, SourceEventID: 2, Attempt: 1}, history.OutcomeAbandoned, 30),
		// for example, a failed compensation
		at(40, history.Event{
			Kind: history.SubOrchestrationFailed, SourceEventID: 4, Error: &history.Failure{Type: "E"},
		}),
		// a timer of the orchestration, #15
		at(40, history.Event{Kind: history.TimerCreated, FireAt: due(1040)}),
		at(40, history.Event{
			Kind: history.SubOrchestrationCancelFailed, SourceEventID: 7, InstanceID: "m",
			Error: &history.Failure{Type: history.TypeNotFound},
		}),
	)
	if got := pendingText(mustPending(t, c, 0)); got != "2: activity#6=weigh timer#15" {
		t.Errorf("after the activities ended: got %s", got)
	}
	// a cancel request that no turn has processed
	p.Append("one", at(50, history.Event{Kind: history.InputsParked, Inputs: []history.Event{
		{Kind: history.ActivityCancelRequested, SourceEventID: 6, Reason: "requested", RequestedBy: "client"},
	}}))
	if diff := cmp.Diff(weigh, mustPending(t, c, 0).Items[0]); diff != "" {
		t.Errorf("parked: mismatch (-want +got):\n%s", diff)
	}
}
