package main

import (
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/perduretest"
)

// continuedTwice returns a tool with the instance poller, which is in its third execution.
func continuedTwice(t *testing.T) *tool {
	t.Helper()
	h := setup(t)
	h.mustRun("start", "hello", "--id", "poller", "--input", "1")
	h.Append("poller",
		at(time.Second, history.Event{Kind: history.TurnStarted, Version: "1.0.0", BuildID: "b-1"}),
		at(time.Minute, history.Event{Kind: history.OrchestrationContinuedAsNew, Input: history.Payload("2")}),
		at(61*time.Second, history.Event{Kind: history.TurnStarted, Version: "1.0.0", BuildID: "b-1"}),
		at(time.Hour, history.Event{Kind: history.OrchestrationContinuedAsNew, Input: history.Payload("3")}),
	)
	return h
}

func TestExecutions_limitAndCursor_printsPages(t *testing.T) {
	t.Parallel()
	h := continuedTwice(t)
	h.mustRun("executions", "poller")
	h.wantGolden("executions.golden")
	want := `{"instanceId":"poller","items":[{"executionId":"x3","number":3,"startedAt":"2026-07-01T04:00:00Z"},{"executionId":"x2","number":2,"startedAt":"2026-07-01T03:01:00Z"}],"nextCursor":"x2"}` + "\n"
	if got := h.mustRun("executions", "poller", "--limit", "2", "--json"); got != want {
		t.Errorf("printed %s", got)
	}
	if got := h.mustRun("executions", "poller", "--limit", "2"); strings.Count(got, "\n") != 3 ||
		!strings.Contains(h.err.String(), "--cursor x2") {
		t.Errorf("printed %s%s", got, h.err.String())
	}
	if got := h.mustRun("executions", "poller", "--cursor", "x2"); strings.Count(got, "\n") != 2 ||
		!strings.Contains(got, " x1 ") || h.err.Len() > 0 {
		t.Errorf("printed %s%s", got, h.err.String())
	}
	h.wantError(cli.CodeError, "cursor does not belong to this list", "executions", "poller", "--cursor", "x9")
	h.wantError(cli.CodeError, "--limit must be 1 to 1000, is 0", "executions", "poller", "--limit", "0")
	h.wantError(cli.CodeError, "limit must be 1 to 1000, is 1001", "executions", "poller", "--limit", "1001")
	h.wantError(cli.CodeError, "run perdure list", "executions", "missing")
}

func TestHistory_pastExecution_isPrinted(t *testing.T) {
	t.Parallel()
	h := continuedTwice(t)
	h.mustRun("history", "poller", "--execution", "x2")
	h.wantGolden("history-past.golden")
	if got := h.mustRun("history", "poller"); !strings.Contains(got,
		"execution x3 (number 3), started 2026-07-01T04:00:00Z") {
		t.Errorf("the current execution: %s", got)
	}
	h.wantError(cli.CodeError, "instance poller has no execution x9; see perdure executions poller", "history",
		"poller", "--execution", "x9")
	h.wantError(cli.CodeError, "has no execution x9", "history", "poller", "--execution", "x9", "--json")
	h.wantError(cli.CodeError, "execution must be 1 to 64 bytes", "history", "poller", "--execution",
		strings.Repeat("x", 65))
}

func TestHistory_json_containsAllExecutions(t *testing.T) {
	t.Parallel()
	h := continuedTwice(t)
	ids := func(args ...string) string {
		t.Helper()
		doc, err := history.DecodeDocument([]byte(h.mustRun(append([]string{"history", "poller", "--json"},
			args...)...)))
		if err != nil || doc.InstanceID != "poller" || doc.Name != "hello" {
			t.Fatalf("%s: %v", h.out.String(), err)
		}
		var all []string
		for i, x := range doc.Executions {
			if x.Events[0].Number != x.Number || len(args) == 0 && x.Number != int64(i)+1 {
				t.Errorf("execution %s is number %d", x.ExecutionID, x.Number)
			}
			all = append(all, x.ExecutionID)
		}
		return strings.Join(all, " ")
	}
	if got := ids(); got != "x1 x2 x3" {
		t.Errorf("executions %s", got)
	}
	if got := ids("--execution", "x2"); got != "x2" {
		t.Errorf("of x2: %s", got)
	}
}

// A unit test replays the exported document of an instance that continued as new, and finds a code change in each
// execution.
func TestHistory_jsonOfContinuedInstance_isReplayedByTestKit(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, rounds(pause, 3))
	if _, err := env.Client().Start(t.Context(), "rounds", 1); err != nil {
		t.Fatal(err)
	}
	env.Advance(time.Hour)
	h := setup(t)
	h.client = env.Client()
	id := strings.Fields(strings.Split(h.mustRun("list"), "\n")[1])[0]
	doc := []byte(h.mustRun("history", id, "--json"))
	if n := strings.Count(string(doc), `"kind":"OrchestrationContinuedAsNew"`); n != 2 {
		t.Fatalf("%d of 2 executions continued: %s", n, doc)
	}
	perduretest.Replay(t, rounds(pause, 3), doc)
	for name, changed := range map[string]*perdure.Registry{
		"another end": rounds(pause, 2), "another wait": rounds(listen, 3),
	} {
		if r := (&report{TB: t}); !r.fails(func() { perduretest.Replay(r, changed, doc) }) {
			t.Errorf("%s: the replay found nothing", name)
		}
	}
}

func pause(ctx *perdure.OrchestrationContext) error { return perdure.Sleep(ctx, time.Minute) }

func listen(ctx *perdure.OrchestrationContext) error {
	_, err := perdure.WaitForExternalEvent[int](ctx, "continue").Await(ctx)
	return err
}

// rounds waits once in each execution. The last execution completes.
func rounds(wait func(*perdure.OrchestrationContext) error, last int) *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "rounds", func(ctx *perdure.OrchestrationContext, n int) (string, error) {
		if err := wait(ctx); err != nil {
			return "", err
		}
		if n < last {
			return perdure.ContinueAsNew[string](ctx, n+1)
		}
		return "done", nil
	})
	return r
}

// report records a failure, and does not fail the test.
type report struct {
	testing.TB

	failed bool
}

func (r *report) Helper() {}

func (r *report) Errorf(string, ...any) { r.failed = true }

func (r *report) fails(replay func()) bool { replay(); return r.failed }
