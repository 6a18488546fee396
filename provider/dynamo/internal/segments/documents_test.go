package segments

import (
	"testing"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// The erasure of past executions must keep executions that are still referred to.
func TestEncodeStart_referencesToExecutions_recordsTheOldest(t *testing.T) {
	t.Parallel()
	at := func(execution string) history.Payload {
		return history.DataLocation{ExecutionID: execution, Segment: 1, EventID: 2}.Refer([]byte(`"x"`))
	}
	carried := func(data ...history.Payload) (e history.Event) {
		for _, d := range data {
			e.CarriedEvents = append(e.CarriedEvents, history.CarriedEvent{Name: "n", Data: d})
		}
		return e
	}
	inputs := carried(at("02"))
	inputs.Inputs = []history.Event{
		{Kind: history.ExternalEventRaised, Name: "n", Time: time.Unix(0, 0).UTC(), Data: at("01")},
	}
	for want, start := range map[string]history.Event{
		"": carried(history.Payload(`"inline"`)), "01": inputs,
		"03": carried(at("07"), at("03"), history.Payload("1"), at("05")),
	} {
		start.ID, start.Kind, start.Time, start.Name = 1, history.OrchestrationStarted, time.Unix(0, 0).UTC(), "n"
		items, err := EncodeStart("i", "09", "08", provider.Segment{Events: []history.Event{start}})
		if err != nil {
			t.Fatal(err)
		}
		if _, there := items[0][table.AttrRefs]; table.GetString(items[0], table.AttrRefs) != want ||
			there != (want != "") {
			t.Errorf("refs %v, want %q", items[0][table.AttrRefs], want)
		}
	}
}
