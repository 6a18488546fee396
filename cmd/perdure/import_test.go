package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/verification"
	"github.com/perdure/perdure/history"
)

// exported exports the instance a, and returns the exported text and a file with the text.
func (h *tool) exported() (file, text string) {
	h.t.Helper()
	text = h.mustRun("export", "a")
	file = filepath.Join(h.t.TempDir(), "history.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
	return file, text
}

// The export equals the output of history --json. import replays it without a hub.
func TestImport_exportedHistory_isReplayed(t *testing.T) {
	t.Parallel()
	h := setup(t)
	fulfilling(h, "a", at(2*time.Second, history.Event{Kind: history.TurnStarted}),
		at(2*time.Second,
			history.Event{Kind: history.ActivityCompleted, SourceEventID: 3, Result: history.Payload("1")}),
		completed(`1`))
	file, text := h.exported()
	if text != h.mustRun("history", "a", "--json") {
		t.Errorf("exported %s", text)
	}
	if one := h.mustRun("export", "a", "--execution", "x1"); one != text {
		t.Errorf("the export of the execution is %s", one)
	}

	for code, want := range map[string]struct {
		exit     int
		wantText string
		outcome  verification.Outcome
		eventID  int64
	}{
		"same": {
			0, "execution x1, 6 events, Completed: matches the history\n", verification.OutcomeContinues, 0,
		},
		"changed": {
			cli.CodeFailed, `history has ActivityScheduled "charge", the code requested ActivityScheduled "authorize"`,
			verification.OutcomeWouldBlock, 3,
		},
		"other version": {cli.CodeFailed, `version "1" is not registered`, verification.OutcomeWouldBlock, 0},
		"other input": {
			0, "with different inputs\n  1 inputs differ from the recorded inputs", verification.OutcomeOtherInputs, 0,
		},
		"dies": {cli.CodeFailed, "no rates are there", verification.OutcomeWouldBlock, 0},
	} {
		binary := orchestratorOf(t, code)
		home := setup(t)
		if exit := home.run(t.Context(), "import", file, "--binary", binary); exit != want.exit ||
			!strings.Contains(home.out.String(), want.wantText) {
			t.Errorf("%s: exit %d, %s%s", code, exit, home.out.String(), home.err.String())
		}
		home.in = text
		home.run(t.Context(), "import", "-", "--binary", binary, "--json")
		var got verification.ImportResult
		if err := json.Unmarshal(home.out.Bytes(), &got); err != nil || got.InstanceID != "a" ||
			len(got.Executions) != 1 || got.Executions[0].Outcome != want.outcome ||
			got.Executions[0].EventID != want.eventID {
			t.Errorf("%s: %s, %v", code, home.out.String(), err)
		}
	}
}

func TestImport_missingHistoryOrBinary_isAnError(t *testing.T) {
	t.Parallel()
	h := setup(t)
	fulfilling(h, "a")
	file, _ := h.exported()
	other := filepath.Join(t.TempDir(), "other.json")
	if err := os.WriteFile(other, []byte(`{"format":"perdure.history/2"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	h.wantError(cli.CodeError, "--binary is required", "import", file)
	h.wantError(cli.CodeError, "missing argument FILE", "import", "--binary", "x")
	h.wantError(cli.CodeError, "is not a history exported by perdure export", "import", other, "--binary", "x")
	h.wantError(cli.CodeError, "no such file", "import", "nowhere.json", "--binary", "x")
	h.wantError(cli.CodeError, "--timeout must be more than 0", "import", file, "--binary", "x", "--timeout", "0s")
	h.wantError(cli.CodeTimeout, "increase --timeout", "import", file, "--binary", orchestratorOf(t, "same"),
		"--timeout", "1ns")
	h.wantError(cli.CodeError, "instance not found", "export", "missing")
}
