package replay_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

// A turn applies the request to wait for an update but not the update after it, and the code continues as new. The next
// execution receives both.
func TestContinuation_parkedUpdateWithCaller_passesBoth(t *testing.T) {
	t.Parallel()
	o := replay.Orchestration{Name: "o", Version: "1", Body: func(c *replay.Context, _ json.RawMessage) replay.Ending {
		_ = c.Await(inline(c, "step"))
		return replay.Ending{Kind: history.OrchestrationContinuedAsNew, Input: json.RawMessage("2")}
	}}
	caller := &history.Parent{InstanceID: "asks", ExecutionID: "01JASKS", EventID: 3}
	brought := started
	brought.Inputs = []history.Event{
		{Kind: history.UpdateAwaited, Time: epoch, Name: "add", EventID: "u", Parent: caller},
		{Kind: history.UpdateAccepted, Time: epoch, Name: "add", EventID: "u", Data: history.Payload("1")},
	}
	x := replay.New(o, options)
	t.Cleanup(func() { x.Close() })
	log := []history.Event{brought}
	if err := x.Replay(log); err != nil {
		t.Fatal(err)
	}
	out, err := x.Turn(replay.Turn{Now: epoch, Version: "1", BuildID: "b", MostParked: 1})
	if err != nil {
		t.Fatal(err)
	}
	log = append(log, out.Events...)
	wantKinds(t, out.Events, "TurnStarted #2", "ActivityScheduled #3 \"step\"", "UpdateAwaited #4 \"add\"")
	outcomes := arrived(log, 3)
	x.Arrive(outcomes)
	if out, err = x.Turn(replay.Turn{Now: epoch, Version: "1", BuildID: "b"}); err != nil {
		t.Fatal(err)
	}
	if out.Continued == nil {
		t.Fatalf("the execution did not continue as new: %v", kinds(out.Events))
	}
	wantKinds(t, out.Continued.Inputs, "UpdateAwaited #0", "UpdateAccepted #0 \"add\"")
}

// The next execution of an instance has the ID of an update that the previous execution has rejected. If the caller
// repeats its request before the code has set a handler, the turn reports the request, and nothing waits.
func TestUpdateAwaited_endedInThePreviousExecution_isReportedAsRepeated(t *testing.T) {
	t.Parallel()
	x := replay.New(body(func(c *replay.Context) { c.Await(c.WaitForExternalEvent("e")) }), replay.Options{})
	t.Cleanup(func() { x.Close() })
	start := history.Event{
		ID: 1, Kind: history.OrchestrationStarted, EventIDs: []string{history.UpdateIDPrefix + "u-1"},
	}
	if err := x.Replay([]history.Event{start}); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Turn(replay.Turn{}); err != nil {
		t.Fatal(err)
	}
	caller := history.Parent{InstanceID: "order-17"}
	again := history.Event{Kind: history.UpdateAwaited, Name: "add", EventID: "u-1", Parent: &caller}
	out, err := x.Turn(replay.Turn{Inputs: [][]history.Event{{again}}})
	if err != nil || len(out.Events) != 0 || out.Repeated["u-1"] != "add" ||
		!slices.Contains(out.Callers["u-1"], caller) {
		t.Errorf("got %+v, %v", out, err)
	}
}
