package perduretest

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

// Replay runs the code in r against the history of a real instance, as `perdure history --json` wrote it, and fails the
// test when the code would not have taken the same decisions. Keep a few histories in testdata: they find changes that
// would block running instances before those are deployed.
func Replay(tb testing.TB, r *perdure.Registry, document []byte) {
	tb.Helper()
	doc, err := history.DecodeDocument(document)
	if err != nil {
		tb.Fatalf("perduretest: recorded history: %v", err)
	}
	for _, x := range doc.Executions {
		if err := replayExecution(r, doc.InstanceID, x.ExecutionID, x.Events); err != nil {
			tb.Errorf("perduretest: instance %q, execution %s: %v", doc.InstanceID, x.ExecutionID, err)
		}
	}
}

func replayExecution(r *perdure.Registry, instanceID, executionID string, events []history.Event) error {
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
