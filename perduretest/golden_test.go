package perduretest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/perduretest"
)

// rounds returns a registry whose orchestration sleeps and continues as new. The input of its activity contains a
// random ID.
func rounds(activity string, naps int) *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, activity, func(context.Context, string) (int, error) { return 1, nil })
	perdure.AddOrchestration(r, "rounds", func(ctx *perdure.OrchestrationContext, left int) (string, error) {
		if _, err := perdure.CallActivityByName[int](ctx, activity, ctx.NewUUID()).Await(ctx); err != nil {
			return "", err
		}
		for range naps {
			if err := perdure.Sleep(ctx, time.Hour); err != nil {
				return "", err
			}
		}
		if left == 0 {
			return "done", nil
		}
		return perdure.ContinueAsNew[string](ctx, left-1)
	})
	return r
}

// golden runs the orchestration of a registry and compares its history with a file.
func golden(t *testing.T, r *perdure.Registry, file string) {
	t.Helper()
	env := perduretest.New(t, r)
	id := start(t, env, "rounds", 1)
	result(t, env, id)
	env.CompareGolden(id, file)
}

// The test sets an environment variable of the process, so it does not run in parallel.
func TestCompareGolden_onlyIDsDiffer_passesAndKeepsTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "testdata", "rounds.json")
	t.Setenv("PERDURE_UPDATE", "1")
	golden(t, rounds("count", 1), file)
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, rounds("count", 1), file)
	if again, err := os.ReadFile(file); err != nil || string(again) != string(written) {
		t.Errorf("the golden file was rewritten although only IDs differ: error %v", err)
	}
	t.Setenv("PERDURE_UPDATE", "")
	golden(t, rounds("count", 1), file)
	perduretest.Replay(t, rounds("count", 1), written)
}

// The failure shows the difference and its effect on running instances.
func TestCompareGolden_differentHistoryOrNoFile_failsTheTest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		r        *perdure.Registry
		file     string
		mentions []string
	}{
		"another activity": {
			rounds("sum", 1), "testdata/rounds.json",
			[]string{`"name":"count"`, `"name":"sum"`, "would be blocked", "PERDURE_UPDATE=1"},
		},
		"additional timer": {rounds("count", 2), "testdata/rounds.json", []string{"would be blocked"}},
		"missing file": {
			rounds("count", 1), "testdata/none.json",
			[]string{"golden history testdata/none.json does not exist", "PERDURE_UPDATE=1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantFailure(t, func(t *testing.T) {
				t.Helper()
				golden(t, c.r, c.file)
			}, c.mentions...)
		})
	}
}

// If only the result of an activity differs, the code still makes the recorded decisions.
func TestCompareGolden_onlyResultsDiffer_reportsThatInstancesContinue(t *testing.T) {
	t.Parallel()
	wantFailure(t, func(t *testing.T) {
		t.Helper()
		env := perduretest.New(t, rounds("count", 1))
		env.Stub("count").Returns(2)
		id := start(t, env, "rounds", 1)
		result(t, env, id)
		env.CompareGolden(id, "testdata/rounds.json")
	}, `"result":1`, `"result":2`, "continue: the code still makes the same decisions")
}

func TestHistory_completedInstance_returnsEventsFromStartToEnd(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, rounds("count", 1))
	id := start(t, env, "rounds", 0)
	result(t, env, id)
	var kinds []string
	for _, e := range env.History(id) {
		kinds = append(kinds, string(e.Kind))
	}
	if got := strings.Join(kinds, " "); !strings.HasPrefix(got, string(history.OrchestrationStarted)) ||
		!strings.HasSuffix(got, string(history.OrchestrationCompleted)) {
		t.Error(got)
	}
	if _, err := env.Client().Status(t.Context(), "missing"); !errors.Is(err, client.ErrNotFound) {
		t.Error(err)
	}
}
