package history_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/history"
)

func TestCancelOutstanding(t *testing.T) {
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
			{Kind: history.ActivityCancelRequested, SourceEventID: 9, RequestedBy: history.RequestedByClient}, // which no turn has decided on
		}},
	}
	want := []history.Event{
		{Kind: history.ActivityCancelRequested, SourceEventIDs: []history.Range{{First: 2, Last: 2}, {First: 5, Last: 5}, {First: 9, Last: 10}}, Reason: "why", RequestedBy: "engine"},
		{Kind: history.TimerCancelled, SourceEventID: 4, Reason: "why"},
		{Kind: history.SubOrchestrationCancelRequested, SourceEventID: 6, InstanceID: "a", Reason: "why", RequestedBy: "engine"},
		{Kind: history.SubOrchestrationCancelRequested, SourceEventID: 8, InstanceID: "c", Reason: "why", RequestedBy: "engine"},
	}
	if diff := cmp.Diff(want, history.CancelOutstanding(past, "why")); diff != "" {
		t.Error(diff)
	}
	if got := history.CancelOutstanding(past[:1], "why"); len(got) != 0 {
		t.Errorf("nothing was outstanding, got %v", got)
	}
}
