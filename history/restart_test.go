package history_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/perdure/perdure/history"
)

// References to documents of the past execution refer to the first segment of the new one. References to documents of
// other executions do not change, and neither do the past events.
func TestR30_restartedExecution_referencesItsFirstSegment(t *testing.T) {
	t.Parallel()
	doc := json.RawMessage(`"a document"`)
	at := func(execution string, segment, event int64, field string) history.Payload {
		return history.DataLocation{ExecutionID: execution, Segment: segment, EventID: event, Field: field}.Refer(doc)
	}
	raised := func(data history.Payload) history.Event {
		return history.Event{Kind: history.ExternalEventRaised, Name: "n", EventID: "e", Data: data}
	}
	numbered := func(id int64, e history.Event) history.Event {
		e.ID = id
		return e
	}
	past := func() []history.Event {
		return []history.Event{
			{
				ID: 1, Kind: history.OrchestrationStarted, Name: "o",
				CarriedEvents: []history.CarriedEvent{
					{Name: "n", Data: at("before", 3, 7, "")},
					{Name: "n", Data: at("old", 0, 1, history.LocationInputs)},
				},
			},
			{ID: 2, Kind: history.TurnStarted},
			{
				ID: 3, Kind: history.InputsParked,
				Inputs: []history.Event{
					raised(history.NewInlinePayload(doc)), raised(at("old", 1, 2, history.LocationInputs)),
					raised(at("before", 3, 8, "")),
				},
			},
			{ID: 4, Kind: history.TurnStarted},
			numbered(5, raised(at("old", 2, 3, history.LocationInputs))),
			numbered(6, raised(at("before", 3, 9, history.LocationCarriedEvents))),
			{ID: 7, Kind: history.TimerCreated, FireAt: &time.Time{}},
		}
	}
	events := past()
	takeover := history.Restart{
		From: history.ExecutionRef{InstanceID: "i", ExecutionID: "old"},
		To:   history.ExecutionRef{InstanceID: "again", ExecutionID: "new"},
	}
	taken := takeover.History(events)
	if want := past(); !reflect.DeepEqual(events, want) {
		t.Errorf("past events: got\n%v\nwant\n%v", events, want)
	}

	for _, c := range []struct {
		what      string
		got, want history.Payload
	}{
		{"carried from an earlier execution", taken[0].CarriedEvents[0].Data, at("before", 3, 7, "")},
		{"carried", taken[0].CarriedEvents[1].Data, at("new", 0, 1, history.LocationInputs)},
		{"parked, inline", taken[2].Inputs[0].Data, history.NewInlinePayload(doc)},
		{"parked", taken[2].Inputs[1].Data, at("new", 0, 2, history.LocationInputs)},
		{"parked, of an earlier execution", taken[2].Inputs[2].Data, at("before", 3, 8, "")},
		{"raised", taken[4].Data, at("new", 0, 3, history.LocationInputs)},
		{"raised, of an earlier execution", taken[5].Data, at("before", 3, 9, history.LocationCarriedEvents)},
	} {
		if string(c.got) != string(c.want) {
			t.Errorf("%s: got %s, want %s", c.what, c.got, c.want)
		}
	}
	if last := taken[len(taken)-1]; last.Kind != history.ExecutionRestarted || last.ID != 8 {
		t.Errorf("last event: got %+v", last)
	}
}
