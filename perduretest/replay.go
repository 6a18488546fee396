package perduretest

import (
	"encoding/json"
	"errors"
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
		if err := replayExecution(r, &doc, x.ExecutionID, x.Events); err != nil {
			tb.Errorf("perduretest: instance %q, execution %s: %v", doc.InstanceID, x.ExecutionID, err)
		}
	}
}

func replayExecution(r *perdure.Registry, doc *history.Document, executionID string, events []history.Event) error {
	version := events[0].Version
	if i := slices.IndexFunc(events, func(e history.Event) bool { return e.Kind == history.TurnStarted }); i >= 0 {
		version = events[i].Version
	}
	code, ok := r.Orchestration(events[0].Name, version)
	if !ok {
		return fmt.Errorf("orchestration %q version %q is not registered", events[0].Name, version)
	}
	x := replay.New(code, replay.Options{
		InstanceID: doc.InstanceID, ExecutionID: executionID, Logger: slog.New(slog.DiscardHandler), Fetch: within(doc),
	})
	defer x.Close()
	return x.Replay(events)
}

// within finds what an execution refers to among all those of the document.
func within(doc *history.Document) func(history.Reference) (json.RawMessage, error) {
	return func(ref history.Reference) (json.RawMessage, error) {
		at, err := history.ParsePlace(ref.Ref)
		if err != nil {
			return nil, err
		}
		for i := range doc.Executions {
			if doc.Executions[i].ExecutionID != at.ExecutionID {
				continue
			}
			data, _ := at.Find(doc.Executions[i].Events)
			if inline, ok := data.Document(); ok && len(data) > 0 {
				return inline, nil
			}
		}
		return nil, errors.New("the recorded history lacks it: record all executions of the instance")
	}
}
