package perduretest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/registry"
)

// History returns the events of an instance's current execution. It fails the test if the instance does not exist.
func (e *Env) History(instanceID string) []history.Event {
	e.t.Helper()
	events, err := client.Collect(e.client.History(e.t.Context(), instanceID))
	if err != nil {
		e.t.Fatalf("perduretest: history: %v", err)
	}
	return events
}

// updateVariable is the environment variable that makes CompareGolden write files.
const updateVariable = "PERDURE_UPDATE"

// CompareGolden compares the whole history of an instance with a file, such as testdata/order.json. If they differ, it
// fails the test with the first event that differs and reports whether running instances would be blocked. With
// PERDURE_UPDATE=1 in the environment, it writes the file instead.
//
// Random IDs are compared by the order of their first occurrence. The file has the format of `perdure history --json`.
// Replay can read the file.
func (e *Env) CompareGolden(instanceID, file string) {
	e.t.Helper()
	now, err := documentOf(e, instanceID)
	if err != nil {
		e.t.Fatalf("perduretest: golden history: %v", err)
	}
	recorded, err := readDocument(file)
	switch {
	case os.Getenv(updateVariable) != "":
		if err == nil && difference(&recorded, &now) == "" {
			return // equal except for IDs
		}
		if err := writeDocument(file, &now); err != nil {
			e.t.Fatalf("perduretest: golden history: %v", err)
		}
	case errors.Is(err, fs.ErrNotExist):
		e.t.Errorf("perduretest: golden history %s does not exist; run the test with %s=1 to write it",
			file, updateVariable)
	case err != nil:
		e.t.Errorf("perduretest: golden history: %v", err)
	default:
		if text := difference(&recorded, &now); text != "" {
			e.t.Errorf("perduretest: history of instance %q differs from %s; run the test with %s=1 to update "+
				"it:\n%s\n%s",
				instanceID, file, updateVariable, text, consequence(e.stubs.code, &recorded))
		}
	}
}

// documentOf returns the history of all executions of an instance.
func documentOf(e *Env, instanceID string) (doc history.Document, err error) {
	ctx := e.t.Context()
	s, err := e.client.Status(ctx, instanceID)
	if err != nil {
		return doc, err
	}
	executions, err := client.Collect(e.client.Executions(ctx, instanceID))
	if err != nil {
		return doc, err
	}
	slices.Reverse(executions) // oldest first
	all := make([]history.DocumentExecution, len(executions))
	for i, x := range executions {
		events, err := client.Collect(e.client.History(ctx, instanceID, client.WithExecutionID(x.ExecutionID)))
		if err != nil {
			return doc, err
		}
		all[i] = history.DocumentExecution{ExecutionID: x.ExecutionID, Number: x.Number, Events: events}
	}
	return history.NewDocument(instanceID, s.Orchestration, all...)
}

// consequence describes the effect of a difference on instances with the recorded history, if the code is known.
func consequence(code *registry.Registry, recorded *history.Document) string {
	if code == nil {
		return ""
	}
	for _, x := range recorded.Executions {
		differences, err := replayExecution(code, nil, recorded, &x)
		switch {
		case err != nil:
			return fmt.Sprintf("Instances with the recorded history would be blocked: %v", err)
		case differences.Count > 0:
			return "Instances with the recorded history continue with the recorded inputs: " + differences.First
		}
	}
	return "Instances with the recorded history continue: the code still makes the same decisions."
}

func readDocument(file string) (history.Document, error) {
	b, err := os.ReadFile(file) //nolint:gosec // the test chooses the path
	if err != nil {
		return history.Document{}, fmt.Errorf("%w", err)
	}
	return history.DecodeDocument(b)
}

func writeDocument(file string, doc *history.Document) error {
	b, err := json.MarshalIndent(doc, "", "\t")
	if err != nil {
		return fmt.Errorf("%w", err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // as all source
		return fmt.Errorf("%w", err)
	}
	if err := os.WriteFile(file, append(b, '\n'), 0o644); err != nil { //nolint:gosec // as all source
		return fmt.Errorf("%w", err)
	}
	return nil
}

// difference describes the first difference of two histories, or returns an empty string.
func difference(recorded, now *history.Document) string {
	was, is := linesOf(recorded), linesOf(now)
	for i := range max(len(was), len(is)) {
		switch {
		case i >= len(is):
			return fmt.Sprintf("recorded  %s\nnow       no event", was[i])
		case i >= len(was):
			return "recorded  no event\nnow       " + is[i]
		case was[i] != is[i]:
			return fmt.Sprintf("recorded  %s\nnow       %s", was[i], is[i])
		}
	}
	return ""
}

// randomID matches random IDs: ULIDs, random texts and UUIDs.
var randomID = regexp.MustCompile(`\b[0-9A-Z]{26}\b|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)

// linesOf returns the events of a history as lines, with IDs replaced by numbers in the order of appearance.
func linesOf(doc *history.Document) []string {
	ids := map[string]string{}
	number := func(id string) string {
		if ids[id] == "" {
			ids[id] = fmt.Sprintf("id-%d", len(ids)+1)
		}
		return ids[id]
	}
	var lines []string
	for i := range doc.Executions {
		x := &doc.Executions[i]
		for j := range x.Events {
			ev := x.Events[j]
			ev.TraceParent = ""
			var b bytes.Buffer
			enc := json.NewEncoder(&b)
			enc.SetEscapeHTML(false)
			if err := enc.Encode(ev); err != nil {
				lines = append(lines, err.Error())
				continue
			}
			text := randomID.ReplaceAllStringFunc(strings.TrimSpace(b.String()), number)
			lines = append(lines, fmt.Sprintf("execution %d: %s", x.Number, text))
		}
	}
	return lines
}
