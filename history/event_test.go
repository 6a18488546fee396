package history_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/history"
)

func TestEventValidate_invalidEvent_returnsError(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		event history.Event
		want  string // empty: valid
	}{
		{history.Event{ID: 1, Kind: history.TurnStarted}, ""},
		{history.Event{ID: 2, Kind: history.TimerFired, SourceEventID: 1}, ""},
		{history.Event{ID: 9, Kind: history.TimerFired, SourceEventIDs: []history.Range{{First: 1, Last: 8}}}, ""},
		{history.Event{Kind: history.TurnStarted}, "id must be at least 1"},
		{history.Event{ID: -1, Kind: history.TurnStarted}, "id must be at least 1"},
		{history.Event{ID: 1}, `unknown kind ""`},
		{history.Event{ID: 1, Kind: "turnStarted"}, `unknown kind "turnStarted"`},
		{history.Event{ID: 2, Kind: history.TimerFired}, "no sourceEventId"},
		{history.Event{ID: 2, Kind: history.TimerFired, SourceEventID: 2}, "sourceEventId 2 is not an earlier event"},
		{history.Event{ID: 2, Kind: history.TimerFired, SourceEventID: -1}, "sourceEventId -1 is not an earlier event"},
		{
			history.Event{
				ID: 9, Kind: history.TimerFired, SourceEventID: 1, SourceEventIDs: []history.Range{{First: 1, Last: 1}},
			},
			"both sourceEventId and sourceEventIds",
		},
		{
			history.Event{ID: 9, Kind: history.TimerFired, SourceEventIDs: []history.Range{{First: 0, Last: 1}}},
			"sourceEventIds [0,1] are not earlier",
		},
		{
			history.Event{ID: 9, Kind: history.TimerFired, SourceEventIDs: []history.Range{{First: 2, Last: 1}}},
			"sourceEventIds [2,1] are not earlier",
		},
		{
			history.Event{ID: 9, Kind: history.TimerFired, SourceEventIDs: []history.Range{{First: 2, Last: 9}}},
			"sourceEventIds [2,9] are not earlier",
		},
		{
			history.Event{ID: 9, Kind: history.InputsParked, Inputs: []history.Event{
				{Kind: history.TimerFired, SourceEventIDs: []history.Range{{First: 1, Last: 1 << 62}}},
			}},
			"sourceEventIds [1,4611686018427387904] are not earlier",
		},
	} {
		err := tt.event.Validate()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: got %v, want %q", tt.event, err, tt.want)
		}
	}
}

func TestConcat_gapOrEventAfterEnd_returnsError(t *testing.T) {
	t.Parallel()
	event := func(id int64, k history.Kind) history.Event { return history.Event{ID: id, Kind: k} }
	started, turn, end := event(1, history.OrchestrationStarted), event(2, history.TurnStarted),
		event(3, history.OrchestrationCompleted)
	for _, tt := range []struct {
		runs [][]history.Event
		want string
	}{
		{nil, ""},
		{[][]history.Event{{started}, {turn, end}}, ""},
		{[][]history.Event{{started}, {}, {turn}}, ""},
		{[][]history.Event{{turn}}, "event #2 (TurnStarted): expected event #1"},
		{
			[][]history.Event{{started, turn}, {event(4, history.TurnStarted)}},
			"event #4 (TurnStarted): expected event #3",
		},
		{[][]history.Event{{started, turn}, {turn}}, "event #2 (TurnStarted): expected event #3"},
		{
			[][]history.Event{{started, turn, end}, {event(4, history.TurnStarted)}},
			"event #4 (TurnStarted) follows the terminal event OrchestrationCompleted",
		},
	} {
		n := 0
		for _, r := range tt.runs {
			n += len(r)
		}
		log, err := history.Concat(tt.runs...)
		if tt.want == "" && (err != nil || len(log) != n) ||
			tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%v: got %d events, error %v, want %q", tt.runs, len(log), err, tt.want)
		}
	}
}

// Replay compares all events except inputs and markers. A change of a kind would break running instances.
func TestEventIsInput_eachKind_isFixed(t *testing.T) {
	t.Parallel()
	inputs := map[history.Kind]bool{
		history.ActivityRetryScheduled: true, history.ActivityCompleted: true, history.ActivityFailed: true,
		history.TimerFired:   true,
		history.OutputFailed: true, history.SubOrchestrationCompleted: true, history.SubOrchestrationFailed: true,
		history.SubOrchestrationCancelFailed: true, history.ExternalEventRaised: true,
		history.ExternalEventDelivered: true, history.ExternalEventUndelivered: true, history.CancelRequested: true,
		history.OrchestrationTerminated: true,
		history.ExecutionSuspended:      true, history.ExecutionResumed: true, history.ExecutionRestarted: true,
		history.UpdateReceived: true, history.UpdateAccepted: true, history.UpdateRejected: true,
		history.UpdateAwaited: true, history.UpdateAnswered: true,
	}
	for _, k := range history.Kinds() {
		e := history.Event{Kind: k, RequestedBy: history.RequestedByOrchestration}
		if e.IsInput() != inputs[k] {
			t.Errorf("%s: got IsInput %v", k, e.IsInput())
		}
	}
	for by, input := range map[string]bool{
		history.RequestedByOrchestration: false, history.RequestedByEngine: false, history.RequestedByClient: true,
		"parent:p": true, "": true,
	} {
		for _, k := range []history.Kind{history.ActivityCancelRequested, history.SubOrchestrationCancelRequested} {
			if e := (history.Event{Kind: k, RequestedBy: by}); e.IsInput() != input {
				t.Errorf("%s by %q: got IsInput %v", k, by, e.IsInput())
			}
		}
	}
}

func TestKindTerminal_isTrueForEndsOnly(t *testing.T) {
	t.Parallel()
	for _, k := range history.Kinds() {
		want := k == history.OrchestrationCompleted || k == history.OrchestrationFailed ||
			k == history.OrchestrationCancelled ||
			k == history.OrchestrationTerminated || k == history.OrchestrationContinuedAsNew
		if k.Terminal() != want {
			t.Errorf("%s: got Terminal %v", k, k.Terminal())
		}
	}
	if unknown := history.Kind("Teleported"); unknown.Known() || unknown.Terminal() || unknown.HasSource() {
		t.Error("unknown kind: got a trait")
	}
}

func TestEventString_hasKindIDAndDetails(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]history.Event{
		"TurnStarted #2":                {ID: 2, Kind: history.TurnStarted},
		`ActivityScheduled #3 "charge"`: {ID: 3, Kind: history.ActivityScheduled, Name: "charge"},
		"ActivityCancelRequested #4 of #3 (requested)": {
			ID: 4, Kind: history.ActivityCancelRequested, SourceEventID: 3, Reason: "requested",
		},
	} {
		if got := e.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
