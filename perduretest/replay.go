package perduretest

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

// recordedFormat is what `perdure history --json` writes.
const recordedFormat = "perdure.history/1"

type recorded struct {
	Format     string `json:"format"`
	InstanceID string `json:"instanceId"`
	Name       string `json:"name"`
	Executions []struct {
		ExecutionID string          `json:"executionId"`
		Events      []history.Event `json:"events"`
	} `json:"executions"`
}

// Replay runs the code in r against the history of a real instance, as `perdure history --json` wrote it, and fails the
// test when the code would not have taken the same decisions. Keep a few histories in testdata: they find changes that
// would block running instances before those are deployed.
func Replay(tb testing.TB, r *perdure.Registry, document []byte) {
	tb.Helper()
	var doc recorded
	if err := json.Unmarshal(document, &doc); err != nil {
		tb.Fatalf("perduretest: recorded history: %v", err)
	}
	if doc.Format != recordedFormat || len(doc.Executions) == 0 {
		tb.Fatalf("perduretest: recorded history: format %q with %d executions instead of %q", doc.Format, len(doc.Executions), recordedFormat)
	}
	for _, x := range doc.Executions {
		if err := replayExecution(r, doc.InstanceID, x.ExecutionID, x.Events); err != nil {
			tb.Errorf("perduretest: instance %q, execution %s: %v", doc.InstanceID, x.ExecutionID, err)
		}
	}
}

func replayExecution(r *perdure.Registry, instanceID, executionID string, events []history.Event) error {
	if _, err := history.Log(events); err != nil || len(events) == 0 {
		return fmt.Errorf("not a history: %d events: %w", len(events), err)
	}
	version := events[0].Version
	if i := slices.IndexFunc(events, func(e history.Event) bool { return e.Kind == history.TurnStarted }); i >= 0 {
		version = events[i].Version
	}
	code, ok := r.Orchestration(events[0].Name, version)
	if !ok {
		return fmt.Errorf("orchestration %q version %q is not registered", events[0].Name, version)
	}
	x := replay.New(code, replay.Options{InstanceID: instanceID, ExecutionID: executionID, Logger: slog.New(slog.DiscardHandler)})
	defer x.Close()
	return x.Replay(events)
}
