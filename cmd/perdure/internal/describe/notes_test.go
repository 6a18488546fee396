package describe_test

import (
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/describe"
	"github.com/perdure/perdure/history"
)

func TestNotes_callerHasFormatCharacters_printsNone(t *testing.T) {
	t.Parallel()
	s := client.Status{InstanceID: "one", Orchestration: "hello", Status: "Running", Notes: []client.Note{
		{Text: "x\u202ey", By: "joe\u202e\u2028nna", At: time.Now()},
	}}
	events := []history.Event{{ID: 1, Kind: history.OrchestrationStarted, Time: time.Now()}}
	for name, out := range map[string]string{
		"status": describe.Status(s), "history": describe.History(s, "x1", events),
	} {
		if strings.ContainsAny(out, "\u202e\u2028") || !strings.Contains(out, "nna") {
			t.Errorf("%s prints %q", name, out)
		}
	}
}
