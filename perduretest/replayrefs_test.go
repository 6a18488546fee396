package perduretest_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/perduretest"
)

// A recorded execution can refer to a document of another execution in the recording.
func TestReplay_referenceToAnEarlierExecution_isResolved(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "greets", func(ctx *perdure.OrchestrationContext, n int) (string, error) {
		if n == 0 {
			return perdure.ContinueAsNew[string](ctx, 1)
		}
		return perdure.WaitForExternalEvent[string](ctx, "name").Await(ctx)
	})
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	doc := json.RawMessage(`"Ada"`)
	at := history.DataLocation{ExecutionID: "01", Segment: 2, EventID: 2, Field: history.LocationInputs, Index: 0}
	events := func(es ...history.Event) []history.Event {
		for i := range es {
			es[i].ID, es[i].Time = int64(i)+1, now
		}
		return es
	}
	raised := history.Event{
		Kind: history.ExternalEventRaised, Name: "name", EventID: "e", Data: history.NewInlinePayload(doc),
	}
	d, err := history.NewDocument("i", "greets",
		history.DocumentExecution{ExecutionID: "01", Number: 1, Events: events(
			history.Event{
				Kind: history.OrchestrationStarted, Name: "greets", Input: history.Payload("0"), StartID: "s",
				Number: 1,
			},
			history.Event{Kind: history.InputsParked, BuildID: "b", Inputs: []history.Event{raised}},
			history.Event{Kind: history.TurnStarted, Version: "0", BuildID: "b"},
			history.Event{Kind: history.OrchestrationContinuedAsNew, ExecutionID: "02"},
		)},
		history.DocumentExecution{ExecutionID: "02", Number: 2, Events: events(
			history.Event{
				Kind: history.OrchestrationStarted, Name: "greets", Input: history.Payload("1"), StartID: "s",
				Number:        2,
				CarriedEvents: []history.CarriedEvent{{Name: "name", EventID: "e", Data: at.Refer(doc)}},
			},
			history.Event{Kind: history.TurnStarted, Version: "0", BuildID: "b"},
			history.Event{Kind: history.ExternalEventSubscribed, Name: "name"},
			history.Event{Kind: history.OrchestrationCompleted, Output: history.Payload(doc)},
		)},
	)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	perduretest.Replay(t, r, b)
}
