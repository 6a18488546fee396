package execution

import (
	"testing"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

func at(second int64) time.Time { return time.Unix(second, 0) }

func TestIndex_findsSegmentsAndTimes(t *testing.T) {
	t.Parallel()
	var x Index
	x.add([]history.Event{{ID: 1, Kind: history.OrchestrationStarted, Time: at(1)}})
	x.add([]history.Event{ // two turns in a segment
		{ID: 2, Kind: history.TurnStarted, Time: at(2)},
		{ID: 3, Kind: history.ActivityScheduled, Time: at(2)},
		{ID: 4, Kind: history.TurnStarted, Time: at(3)},
		{ID: 5, Kind: history.TimerCreated, Time: at(3)},
	})
	for id, want := range map[int64]struct{ segment, second int64 }{
		1: {0, 1}, 2: {1, 2}, 3: {1, 2}, 4: {1, 3}, 5: {1, 3},
	} {
		if segment, time := x.SegmentOf(id), x.TimeOf(id); segment != want.segment || !time.Equal(at(want.second)) {
			t.Errorf("event %d: segment %d, time %v", id, segment, time)
		}
	}
	if segment := x.SegmentOf(6); segment != 2 {
		t.Errorf("an event of the current turn: segment %d", segment)
	}
	if x.HadTurnBefore(at(2)) || !x.HadTurnBefore(at(3)) {
		t.Error("the first turn is not at its time")
	}
}

func TestCoverage_turnTakesOnlyParkedInputs_noMessageRefersToIt(t *testing.T) {
	t.Parallel()
	part := []history.Event{{Kind: history.TurnStarted, ParkedConsumed: 1}}
	for name, c := range map[string]struct {
		wake bool // the first part consumes it
		none bool
	}{"without a wake": {false, true}, "with a wake": {true, false}} {
		var got coverage
		got.apply(part, c.wake)
		got.apply(part, false)
		if got.none != c.none {
			t.Errorf("%s: %+v", name, got)
		}
		got.apply([]history.Event{{Kind: history.TurnStarted}}, true)
		if got != (coverage{}) {
			t.Errorf("%s: after an ordinary turn: %+v", name, got)
		}
	}
}

func TestRecipient_messageOfAnotherExecutionOrStart_doesNotConcernIt(t *testing.T) {
	t.Parallel()
	r := Recipient{executionID: "x", startID: "s"}
	for name, c := range map[string]struct {
		executionID, startID string
		concerns             bool
	}{
		"current": {"", "", true}, "this": {"x", "s", true},
		"another execution": {"y", "", false}, "another start": {"", "t", false},
	} {
		m := &provider.InboxMessage{Message: provider.Message{ExecutionID: c.executionID, StartID: c.startID}}
		if got := r.Concerns(m); got != c.concerns {
			t.Errorf("%s: %v", name, got)
		}
	}
}
