package tasks

import (
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// index is an Index in which all events are in segment 1 and have the same time.
type index struct{}

func (index) SegmentOf(int64) int64  { return 1 }
func (index) TimeOf(int64) time.Time { return time.Unix(1, 0) }

// The event that settles a task decides its outcome. The end of an execution cancels its open tasks.
func TestCommit_event_decidesTheOutcomeOfTheTask(t *testing.T) {
	t.Parallel()
	failed := &history.Failure{Type: "E"}
	cancelled := &history.Failure{Type: history.TypeCancelled, Reason: "requested"}
	for name, c := range map[string]struct {
		scheduled, settled history.Event
		want               perdure.TaskInfo
	}{
		"completed": {
			history.Event{Kind: history.ActivityScheduled},
			history.Event{Kind: history.ActivityCompleted},
			perdure.TaskInfo{Kind: perdure.TaskActivity, Outcome: perdure.TaskCompleted},
		},
		"failed": {
			history.Event{Kind: history.ActivityScheduled},
			history.Event{Kind: history.ActivityFailed, Error: failed},
			perdure.TaskInfo{Kind: perdure.TaskActivity, Outcome: perdure.TaskFailed},
		},
		"ended because of a cancel": {
			history.Event{Kind: history.SubOrchestrationScheduled},
			history.Event{Kind: history.SubOrchestrationFailed, Error: cancelled},
			perdure.TaskInfo{
				Kind: perdure.TaskSubOrchestration, Outcome: perdure.TaskCancelled, Reason: "requested",
			},
		},
		"open at the end of the execution": {
			history.Event{Kind: history.TimerCreated},
			history.Event{Kind: history.OrchestrationTerminated},
			perdure.TaskInfo{
				Kind: perdure.TaskTimer, Outcome: perdure.TaskCancelled,
				Reason: history.TerminalReason(history.OrchestrationTerminated),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open := NewOpen([]provider.Segment{{Events: []history.Event{{ID: 1, Kind: history.OrchestrationStarted}}}})
			c.scheduled.ID, c.settled.ID = 2, 3
			c.settled.SourceEventID = 2
			turn := &provider.Turn{Events: []history.Event{c.scheduled}}
			if got := open.Commit(index{}, "o", turn, nil); len(got.Scheduled) != 1 || len(got.Ended) != 0 {
				t.Fatalf("the first turn reports %+v", got)
			}
			turn = &provider.Turn{Events: []history.Event{c.settled}}
			got := open.Commit(index{}, "o", turn, nil)
			if got == nil || len(got.Ended) != 1 {
				t.Fatalf("the second turn reports %+v", got)
			}
			end := got.Ended[0]
			if end.Kind != c.want.Kind || end.Outcome != c.want.Outcome || end.Reason != c.want.Reason {
				t.Errorf("got %+v, want %+v", end, c.want)
			}
			if rest := open.state.OpenCount(); c.settled.Kind.Terminal() == (rest == 0) {
				t.Errorf("%d tasks are open", rest)
			}
		})
	}
}

// A turn without tasks reports nothing.
func TestCommit_noTasks_reportsNothing(t *testing.T) {
	t.Parallel()
	turn := &provider.Turn{Events: []history.Event{{ID: 2, Kind: history.TurnStarted}}}
	if got := NewOpen(nil).Commit(index{}, "o", turn, nil); got != nil {
		t.Errorf("got %+v, want nil", got)
	}
}
