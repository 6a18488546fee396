package replay_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

// passing returns an orchestration that passes inputs to an activity, to a child and to a detached orchestration.
func passing(inputs ...string) replay.Orchestration {
	return body(func(c *replay.Context) {
		t := c.ScheduleActivity(replay.ActivityCall{Name: "a", Queue: "default", Input: json.RawMessage(inputs[0])})
		c.ScheduleSubOrchestration(replay.SubOrchestrationCall{Name: "b", Input: json.RawMessage(inputs[1])})
		c.StartDetached(replay.SubOrchestrationCall{Name: "d", Input: json.RawMessage(inputs[2])})
		c.Await(t)
	})
}

// replayedBy replays a history with the code of a build.
func replayedBy(t *testing.T, build string, o replay.Orchestration, log []history.Event) (*replay.Instance, error) {
	t.Helper()
	opts := options
	opts.BuildID = build
	x := replay.New(o, opts)
	t.Cleanup(func() { x.Close() })
	return x, x.Replay(log)
}

func TestReplay_sameBuildOtherInput_isNondeterminism(t *testing.T) {
	t.Parallel()
	log := record(t, passing("1", "2", "3")) // by build "b"
	for name, tt := range map[string]struct {
		inputs        []string
		eventID       int64
		expected, got string
	}{
		"activity": {
			[]string{"7", "2", "3"},
			3, `ActivityScheduled "a" with the input 1`,
			`ActivityScheduled "a" with the input 7`,
		},
		"child": {
			[]string{"1", "7", "3"},
			4, `SubOrchestrationScheduled "b" as instance "order-17:01JEXECUTION:4" with the input 2`,
			`SubOrchestrationScheduled "b" as instance "order-17:01JEXECUTION:4" with the input 7`,
		},
		"detached": {
			[]string{"1", "2", `{}`},
			5, `DetachedOrchestrationScheduled "d" as instance "order-17:01JEXECUTION:5" with the input 3`,
			`DetachedOrchestrationScheduled "d" as instance "order-17:01JEXECUTION:5" with the input {}`,
		},
	} {
		_, err := replayedBy(t, "b", passing(tt.inputs...), log)
		e := as[*replay.NondeterminismError](t, err)
		if e.EventID != tt.eventID || e.Expected != tt.expected || e.Got != tt.got {
			t.Errorf("%s: got %+v", name, e)
		}
	}
	if x, err := replayedBy(t, "b", passing(" 1", "2 ", "\n3"), log); err != nil ||
		x.Differences() != (replay.Differences{}) {
		t.Errorf("inputs that differ only in white space: error %v, differences %+v", err, x.Differences())
	}
}

// The recorded input of another build applies, and the difference is reported.
func TestReplay_otherBuildOtherInput_isReported(t *testing.T) {
	t.Parallel()
	log := record(t, passing("1", "2", "3"))
	x, err := replayedBy(t, "c", passing("7", "2", "8"), log)
	if err != nil {
		t.Fatal(err)
	}
	want := `event #3: history has ActivityScheduled "a" with the input 1, the code requests ActivityScheduled "a" with the input 7`
	if d := x.Differences(); d.Count != 2 || d.First != want {
		t.Errorf("got %+v", d)
	}
	// The code must still match the history in later decisions.
	log = append(log, turn(t, x, done(3))...)
	if _, err = replayedBy(t, "c", passing("7", "2", "8"), log); err != nil {
		t.Error(err)
	}
}

// Each turn is compared with the build that ran it.
func TestReplay_severalBuilds_eachTurnUsesItsBuild(t *testing.T) {
	t.Parallel()
	chain := func(inputs ...string) replay.Orchestration {
		return body(func(c *replay.Context) {
			for _, in := range inputs {
				c.Await(c.ScheduleActivity(replay.ActivityCall{
					Name: "a", Queue: "default", Input: json.RawMessage(in),
				}))
			}
		})
	}
	old := record(t, chain("1", "2", "3"))
	x, err := replayedBy(t, "new", chain("7", "8", "9"), old)
	if err != nil {
		t.Fatal(err)
	}
	out, err := x.Turn(replay.Turn{
		Now: epoch, Version: "1", BuildID: "new", Inputs: [][]history.Event{message(done(3))},
	})
	if err != nil {
		t.Fatal(err)
	}
	log := slices.Concat(old, out.Events)
	if x, err = replayedBy(t, "new", chain("7", "8", "9"), log); err != nil || x.Differences().Count != 1 {
		t.Errorf("got error %v, differences %+v", err, x.Differences())
	}
	if x, err = replayedBy(t, "b", chain("1", "2", "3"), log); err != nil || x.Differences().Count != 1 {
		t.Errorf("replay by the old build: error %v, differences %+v", err, x.Differences())
	}
	_, err = replayedBy(t, "new", chain("7", "0", "9"), log)
	as[*replay.NondeterminismError](t, err)
}

// The diagnosis of long inputs shows where they differ.
func TestNondeterminismError_longInputs_showsDifference(t *testing.T) {
	t.Parallel()
	doc := func(s string) string {
		return `"` + strings.Repeat("é", 10_000) + s + strings.Repeat("z", 10_000) + `"`
	}
	_, err := replayedBy(t, "b", passing(doc("one"), "2", "3"), record(t, passing(doc("two"), "2", "3")))
	e := as[*replay.NondeterminismError](t, err)
	if !strings.Contains(e.Expected, "éétwozz") || !strings.Contains(e.Got, "ééonezz") ||
		len(e.Expected)+len(e.Got) > 600 {
		t.Errorf("got %s", e)
	}
}
