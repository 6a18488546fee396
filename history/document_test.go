package history_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/history"
)

func TestDocument_encoded_isDecodedUnchanged(t *testing.T) {
	t.Parallel()
	want, err := history.NewDocument("order/1", "fulfil",
		history.DocumentExecution{ExecutionID: "x1", Number: 1, Events: []history.Event{
			{ID: 1, Kind: history.OrchestrationStarted, Time: noon, Name: "fulfil", Number: 1, Input: in},
			{ID: 2, Kind: history.OrchestrationContinuedAsNew, Time: noon, ExecutionID: "x2"},
		}},
		history.DocumentExecution{ExecutionID: "x2", Number: 2, Events: []history.Event{
			{ID: 1, Kind: history.OrchestrationStarted, Time: later, Name: "fulfil", Number: 2, Input: in},
		}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(want)
	if err != nil ||
		!strings.HasPrefix(string(b),
			`{"format":"perdure.history/1","instanceId":"order/1","name":"fulfil","executions":[{"executionId":"x1","number":1,"events":[{"id":1,`) {
		t.Fatalf("got %s, error %v", b, err)
	}
	got, err := history.DecodeDocument(b)
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("got error %v, mismatch (-want +got):\n%s", err, cmp.Diff(want, got))
	}
}

func TestDecodeDocument_invalidDocument_returnsError(t *testing.T) {
	t.Parallel()
	const started = `{"id":1,"kind":"OrchestrationStarted","time":"2026-01-02T12:00:00Z"}`
	document := func(events string) string {
		return `{"format":"perdure.history/1","instanceId":"i","executions":[{"executionId":"x1","events":[` + started +
			`]},{"executionId":"x2","events":` + events + `}]}`
	}
	for want, doc := range map[string]string{
		"unexpected end":                            `{`,
		`unknown format "perdure.history/2"`:        `{"format":"perdure.history/2"}`,
		`instance "i" has no executions`:            `{"format":"perdure.history/1","instanceId":"i"}`,
		"execution x2: has no events":               document(`[]`),
		`unknown kind "Later"`:                      document(`[{"id":1,"kind":"Later"}]`),
		"execution x2: history: event #1":           document(`[` + started + `,` + started + `]`),
		`instance "i": execution x2: history: even`: document(`[{"id":2,"kind":"TurnStarted"}]`),
	} {
		if _, err := history.DecodeDocument([]byte(doc)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", doc, err, want)
		}
	}
	if _, err := history.NewDocument("i", "fulfil", history.DocumentExecution{ExecutionID: "x1"}); err == nil {
		t.Error("execution without events: got no error")
	}
}
