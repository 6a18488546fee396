package replay_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/internal/replay/stack"
)

// counted waits for activities one after the other. A query returns the number of completed activities.
func counted() replay.Orchestration {
	return body(func(c *replay.Context) {
		done := 0
		c.SetQueryHandler("done", func(json.RawMessage) replay.QueryOutput {
			return replay.QueryOutput{Output: json.RawMessage{byte('0' + done)}}
		})
		c.SetQueryHandler("asks for more", func(json.RawMessage) replay.QueryOutput {
			activity(c, "more")
			return replay.QueryOutput{}
		})
		for range 2 {
			c.Await(activity(c, "charge"))
			done++
		}
	})
}

// queried returns an instance that was replayed for a query.
func queried(t *testing.T, events []history.Event) *replay.Instance {
	t.Helper()
	x := replay.New(counted(), options)
	t.Cleanup(func() { x.Close() })
	if err := x.Replay(events); err != nil {
		t.Fatal(err)
	}
	return x
}

// A query reads the state after each replay, and also after the end of the execution.
func TestQuery_afterEachReplay_readsItsState(t *testing.T) {
	t.Parallel()
	events := record(t, counted(), message(done(3)), message(done(6)))
	for want, until := range []history.Kind{
		history.ActivityScheduled, history.ActivityCompleted, history.OrchestrationCompleted,
	} {
		i := slices.IndexFunc(events, func(e history.Event) bool { return e.Kind == until })
		if until == history.ActivityCompleted {
			i++ // the decision of the code belongs to the same part
		}
		response, err := queried(t, events[:i+1]).Query("done", nil)
		if err != nil || string(response.Output) != string(rune('0'+want)) {
			t.Errorf("query up to %s: got %s, error %v", until, response.Output, err)
		}
	}
}

func TestQuery_noResponse_isError(t *testing.T) {
	t.Parallel()
	_, err := queried(t, []history.Event{started}).Query("done", nil)
	as[*replay.NotBegunError](t, err)

	events := record(t, counted())
	_, err = queried(t, events).Query("gone", nil)
	if e := as[*replay.UnknownQueryError](t, err); !slices.Equal(e.Known, []string{"asks for more", "done"}) {
		t.Errorf("got known queries %q", e.Known)
	}
	x := queried(t, events)
	_, err = x.Query("asks for more", nil)
	if e := as[*replay.QueryMisuseError](t, err); !strings.Contains(stack.Where(e.Stack), "query_test.go") {
		t.Errorf("position of the error: got %s", stack.Where(e.Stack))
	}
	if !x.Close() {
		t.Error("coroutines have not ended after Close")
	}
	if _, err := x.Query("done", nil); err == nil {
		t.Error("a closed instance responded to a query")
	}
}
