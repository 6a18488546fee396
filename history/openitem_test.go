package history_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/history"
)

func TestCancelOutstanding_returnsCancelsOfAllOpenWork(t *testing.T) {
	t.Parallel()
	past := []history.Event{
		{ID: 1, Kind: history.OrchestrationStarted},
		{ID: 2, Kind: history.ActivityScheduled},
		{ID: 3, Kind: history.ActivityScheduled},
		{ID: 4, Kind: history.TimerCreated},
		{ID: 5, Kind: history.ActivityScheduled},
		{ID: 6, Kind: history.SubOrchestrationScheduled, InstanceID: "a"},
		{ID: 7, Kind: history.SubOrchestrationScheduled, InstanceID: "b"},
		{ID: 8, Kind: history.SubOrchestrationScheduled, InstanceID: "c"},
		{ID: 9, Kind: history.ActivityScheduled},
		{ID: 10, Kind: history.ActivityScheduled},
		{ID: 11, Kind: history.TimerCreated},
		{ID: 12, Kind: history.ActivityCompleted, SourceEventID: 3},
		{ID: 13, Kind: history.ActivityRetryScheduled, SourceEventID: 2},
		{ID: 14, Kind: history.TimerCancelled, SourceEventIDs: []history.Range{{First: 11, Last: 11}}},
		{ID: 15, Kind: history.InputsParked, Inputs: []history.Event{
			{Kind: history.SubOrchestrationCompleted, SourceEventID: 7},
			// no turn has consumed this request
			{Kind: history.ActivityCancelRequested, SourceEventID: 9, RequestedBy: history.RequestedByClient},
		}},
	}
	want := []history.Event{
		{
			Kind:           history.ActivityCancelRequested,
			SourceEventIDs: []history.Range{{First: 2, Last: 2}, {First: 5, Last: 5}, {First: 9, Last: 10}},
			Reason:         "why", RequestedBy: "engine",
		},
		{Kind: history.TimerCancelled, SourceEventID: 4, Reason: "why"},
		{
			Kind: history.SubOrchestrationCancelRequested, SourceEventID: 6, InstanceID: "a", Reason: "why",
			RequestedBy: "engine",
		},
		{
			Kind: history.SubOrchestrationCancelRequested, SourceEventID: 8, InstanceID: "c", Reason: "why",
			RequestedBy: "engine",
		},
	}
	if diff := cmp.Diff(want, history.NewState(history.TrackOpen, past...).CancelOutstanding("why")); diff != "" {
		t.Error(diff)
	}
	if got := history.NewState(history.TrackOpen, past[:1]...).CancelOutstanding("why"); len(got) != 0 {
		t.Errorf("no outstanding work: got %v", got)
	}
}

// The timer of an activity is needed until the activity has an outcome.
func TestObsoleteTimers_activityHasOutcome_returnsItsTimer(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	scheduled := history.Event{ID: 3, Kind: history.ActivityScheduled, Time: noon, ScheduleToCloseMs: 60_000}
	unlimited := history.Event{ID: 4, Kind: history.ActivityScheduled, Time: noon}
	for kind, settles := range map[history.Kind]bool{
		history.ActivityCompleted: true, history.ActivityFailed: true, history.ActivityCancelRequested: true,
		history.OutputFailed:           true,
		history.ActivityRetryScheduled: false, history.ExternalEventRaised: false,
	} {
		state := history.NewState(history.TrackTimers, scheduled, unlimited)
		want := history.OpenItem{
			ID: 3, Kind: history.ActivityScheduled, ScheduledAt: noon, FireAt: noon.Add(61 * time.Second),
		}
		if got, ok := state.Open(3); !ok || got != want || state.OpenCount() != 1 || !state.HasTimer(3) ||
			state.HasTimer(4) {
			t.Fatalf("open work: got %+v, want %+v", got, want)
		}
		end := history.Event{ID: 5, Kind: kind, SourceEventIDs: []history.Range{{First: 3, Last: 4}}}
		got := state.ObsoleteTimers(end)
		state.Apply(end)
		if len(got) == 1 != settles || state.OpenCount() == 0 != settles {
			t.Errorf("%s: got obsolete timers %+v, %d open", kind, got, state.OpenCount())
		}
	}
}

// Cancelled work with WaitForCancellation stays open until it has ended. It has no further attempts, and its
// schedule-to-close time continues.
func TestState_cancelledWorkWithWaitForCancellation_staysOpen(t *testing.T) {
	t.Parallel()
	waits, retry := &history.CancelDetails{WaitForCancellation: true}, &history.RetryPolicy{MaxAttempts: 3}
	state := history.NewState(history.TrackOpen|history.TrackSettled,
		history.Event{ID: 1, Kind: history.OrchestrationStarted},
		history.Event{ID: 2, Kind: history.TurnStarted},
		history.Event{ID: 3, Kind: history.ActivityScheduled, Cancel: waits, Retry: retry, ScheduleToCloseMs: 60_000},
		history.Event{ID: 4, Kind: history.ActivityScheduled, Retry: retry},
		history.Event{ID: 5, Kind: history.SubOrchestrationScheduled, InstanceID: "c", Cancel: waits},
	)
	cancels := []history.Event{
		{ID: 6, Kind: history.ActivityCancelRequested, SourceEventIDs: []history.Range{{First: 3, Last: 4}}},
		{ID: 7, Kind: history.SubOrchestrationCancelRequested, SourceEventID: 5, InstanceID: "c"},
	}
	obsolete := state.ObsoleteTimers(cancels...)
	if len(obsolete) != 2 || obsolete[0].ID != 3 || !obsolete[0].MayHaveRetryTimer || !obsolete[0].FireAt.IsZero() ||
		obsolete[1].ID != 4 {
		t.Errorf("got obsolete timers %+v", obsolete)
	}

	state.Apply(cancels...)
	activity, open := state.Open(3)
	if !open || !activity.Cancelled || activity.MayHaveRetryTimer || !state.HasTimer(3) {
		t.Errorf("event 3: got %+v, open %v", activity, open)
	}
	if _, open := state.Open(4); open {
		t.Error("event 4: got open")
	}
	if child, open := state.Open(5); !open || !child.Cancelled {
		t.Errorf("event 5: got %+v, open %v", child, open)
	}
	if got := state.CancelOutstanding("why"); len(got) != 0 {
		t.Errorf("cancelled work: got %v", got)
	}
	if settled := state.SettledSet(); settled[3] || !settled[4] || !settled[5] {
		t.Errorf("got settled %v, want 4 and 5 without 3", settled)
	}

	state.Apply(
		history.Event{ID: 8, Kind: history.ActivityFailed, SourceEventID: 3, Attempt: 1},
		history.Event{ID: 9, Kind: history.SubOrchestrationFailed, SourceEventID: 5},
	)
	if settled := state.SettledSet(); state.OpenCount() != 0 || !settled[3] {
		t.Errorf("got %d open, settled %v", state.OpenCount(), settled)
	}
}

// The timer of a delayed start is obsolete if the instance ends before its start time.
func TestObsoleteTimers_instanceEndsBeforeDelayedStart_returnsItsTimer(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	state := history.NewState(history.TrackTimers, history.Event{
		ID: 1, Kind: history.OrchestrationStarted, StartAt: &at,
	})
	end := history.Event{ID: 2, Kind: history.OrchestrationTerminated}
	if got := state.ObsoleteTimers(end); len(got) != 1 || got[0].ID != 1 || !got[0].FireAt.Equal(at) {
		t.Errorf("got obsolete timers %+v", got)
	}
	state.Apply(history.Event{ID: 2, Kind: history.TurnStarted}, history.Event{
		ID: 3, Kind: history.TimerFired, SourceEventID: 1,
	})
	if got := state.ObsoleteTimers(end); len(got) != 0 {
		t.Errorf("fired timer: got obsolete timers %+v", got)
	}
}
