package replay_test

import (
	"encoding/json"
	"testing"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

// A turn takes that an update is awaited, and not the update behind it, and the code continues as new: the next execution has both.
func TestWhoWaitsForAnUpdateThatIsParkedGoesToTheNextExecution(t *testing.T) {
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
		t.Fatalf("it has not continued as new: %v", kinds(out.Events))
	}
	wantKinds(t, out.Continued.Inputs, "UpdateAwaited #0", "UpdateAccepted #0 \"add\"")
}
