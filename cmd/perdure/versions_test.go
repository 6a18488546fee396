package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// The code of a version is obsolete when all instances of the version have ended.
func TestVersions_endedInstances_areNotCounted(t *testing.T) {
	t.Parallel()
	h := setup(t)
	turn := func(id, version string, more ...history.Event) {
		h.mustRun("start", "fulfil", "--id", id)
		h.Append(id,
			append([]history.Event{at(time.Second, history.Event{Kind: history.TurnStarted, Version: version})},
				more...)...)
	}
	turn("a", "1.0.0")
	turn("b", "2.0.0")
	turn("c", "2.0.0", at(time.Minute, history.Event{Kind: history.CancelRequested}))
	turn("d", "2.0.0", completed(`1`))
	turn("e", "0.9.0", completed(`1`))
	h.mustRun("start", "hello")

	h.mustRun("versions")
	h.wantGolden("versions.golden")
	if got := h.mustRun("versions", "--name", "hello"); strings.Contains(got, "fulfil") ||
		strings.Count(got, "\n") != 2 {
		t.Errorf("of one orchestration: %s", got)
	}
	want := `{"versions":[{"orchestration":"hello","version":"","pending":1,"running":0,"cancelling":0,"blocked":0,"paused":0,"oldestCreatedAt":"2026-07-01T03:00:00Z"}]}` + "\n"
	if got := h.mustRun("versions", "--name", "hello", "--json"); got != want {
		t.Errorf("as JSON: %s", got)
	}
	h.wantError(cli.CodeError, "--max-instances requires --changes", "versions", "--max-instances", "10")
	if got := h.mustRun("versions", "--name", "nothing", "--json"); got != `{"versions":[]}`+"\n" {
		t.Errorf("of nothing: %s", got)
	}
}

func TestVersions_moreThanOnePage_countsAll(t *testing.T) {
	t.Parallel()
	h := setup(t)
	for i := range 1001 {
		h.mustRun("start", "hello", "--id", fmt.Sprint("h", i))
	}
	if got := h.mustRun("versions"); !strings.Contains(got, " 1001 ") {
		t.Error(got)
	}
}

// The code before a change is obsolete when no running instance uses it. The command counts the recorded versions of
// the change, and the instances without a recorded version.
func TestVersions_changes_countsRecordedVersions(t *testing.T) {
	t.Parallel()
	h := setup(t)
	begin := func(id, name, version string, more ...history.Event) {
		h.mustRun("start", name, "--id", id)
		h.Append(id,
			append([]history.Event{at(time.Second, history.Event{Kind: history.TurnStarted, Version: version})},
				more...)...)
	}
	mark := func(change, version string) history.Event {
		return at(time.Second, history.Event{Kind: history.VersionMarked, ChangeID: change, Version: version})
	}
	begin("a", "fulfil", "1.0.0", mark("carrier", "1"), mark("tax", "2"))
	begin("b", "fulfil", "1.0.0", mark("carrier", "2"))
	begin("c", "fulfil", "1.0.0", mark("carrier", "10"))
	begin("d", "fulfil", "1.0.0")
	begin("e", "fulfil", "2.0.0", mark("tax", "2"))
	begin("f", "fulfil", "3.0.0")
	begin("g", "fulfil", "3.0.0")
	begin("over", "fulfil", "1.0.0", mark("carrier", "1"), completed(`1`))
	begin("other", "hello", "1.0.0")
	begin("anew", "hello", "1.0.0", mark("old", "1"), at(time.Second, history.Event{
		Kind: history.OrchestrationContinuedAsNew, Input: history.Payload("1"),
	}))

	h.mustRun("versions", "--changes")
	h.wantGolden("versions-changes.golden")
	want := `{"changes":[{"orchestration":"fulfil","orchestrationVersion":"1.0.0","change":"carrier","version":"","instances":1,"oldestCreatedAt":"2026-07-01T03:00:00Z"},`
	if got := h.mustRun("versions", "--changes", "--json"); !strings.HasPrefix(got, want) ||
		!strings.Contains(got,
			`{"orchestration":"fulfil","orchestrationVersion":"2.0.0","change":"tax","version":"2","instances":1,`) ||
		!strings.Contains(got,
			`"withoutChanges":[{"orchestration":"fulfil","orchestrationVersion":"3.0.0","instances":2,`) {
		t.Errorf("as JSON: %s", got)
	}
	if got := h.mustRun("versions", "--changes", "--name", "nothing",
		"--json"); got != `{"changes":[],"withoutChanges":[],"read":0,"complete":true}`+"\n" {
		t.Errorf("of nothing: %s", got)
	}
	if code := h.run(t.Context(), "versions", "--changes", "--max-instances", "0"); code == 0 ||
		!strings.Contains(h.err.String(), "--max-instances") {
		t.Errorf("exit %d, %s", code, h.err.String())
	}
}

// An unreadable history may need old code, so the exit code is 1, even with --json.
func TestVersions_historyIsNotCounted_isAnError(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"--json=false", "--json"} {
		h := unreadable(t, 0)
		exits := func(mentions, prints string, more ...string) {
			t.Helper()
			code := h.run(t.Context(), append([]string{"versions", "--changes", form}, more...)...)
			if wantText := h.err.String(); code != cli.CodeError || !strings.Contains(wantText, mentions) ||
				strings.Count(wantText, "\n") != 1 {
				t.Errorf("%s %v: exit %d, got %s", form, more, code, wantText)
			}
			if form == "--json" && !strings.Contains(h.out.String(), prints) || h.out.Len() == 0 {
				t.Errorf("%s %v: printed %s", form, more, h.out.String())
			}
		}
		exits("2 histories read, but more instances are running; increase --max-instances", `"read":2,"complete":false`,
			"--max-instances", "2")
		h.Damage("x1", fmt.Errorf("h#2: %w", provider.ErrCorrupt))
		exits("1 of 10 histories cannot be read and are not counted: i0", `"read":9,"unread":["i0"],"complete":true`)
		exits("increase --max-instances; 1 of 4 histories cannot be read", `"complete":false`, "--max-instances", "4")
		if code := h.run(t.Context(), "versions", form); code != 0 {
			t.Errorf("%s: exit %d without --changes", form, code)
		}
	}
}
