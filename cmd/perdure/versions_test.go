package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Old code may go once nothing that is not over has its version.
func TestVersionsCountsWhatIsNotOver(t *testing.T) {
	t.Parallel()
	h := setup(t)
	turn := func(id, version string, more ...history.Event) {
		h.mustRun("start", "fulfil", "--id", id)
		h.Append(id, append([]history.Event{at(time.Second, history.Event{Kind: history.TurnStarted, Version: version})}, more...)...)
	}
	turn("a", "1.0.0")
	turn("b", "2.0.0")
	turn("c", "2.0.0", at(time.Minute, history.Event{Kind: history.CancelRequested}))
	turn("d", "2.0.0", completed(`1`))
	turn("e", "0.9.0", completed(`1`))
	h.mustRun("start", "hello")

	h.mustRun("versions")
	h.wantGolden("versions.golden")
	if got := h.mustRun("versions", "--name", "hello"); strings.Contains(got, "fulfil") || strings.Count(got, "\n") != 2 {
		t.Errorf("of one orchestration: %s", got)
	}
	want := `{"versions":[{"orchestration":"hello","version":"","pending":1,"running":0,"cancelling":0,"blocked":0,"paused":0,"oldestCreatedAt":"2026-07-01T03:00:00Z"}]}` + "\n"
	if got := h.mustRun("versions", "--name", "hello", "--json"); got != want {
		t.Errorf("as JSON: %s", got)
	}
	if got := h.mustRun("versions", "--name", "nothing", "--json"); got != `{"versions":[]}`+"\n" {
		t.Errorf("of nothing: %s", got)
	}
}

func TestVersionsCountsMoreThanAPage(t *testing.T) {
	t.Parallel()
	h := setup(t)
	for i := range 1001 {
		h.mustRun("start", "hello", "--id", fmt.Sprint("h", i))
	}
	if got := h.mustRun("versions"); !strings.Contains(got, " 1001 ") {
		t.Error(got)
	}
}

// Code of before a change may go once no instance that is under way goes by it: what history says of each is counted, and what has none.
func TestVersionsCountsChanges(t *testing.T) {
	t.Parallel()
	h := setup(t)
	begin := func(id, name string, more ...history.Event) {
		h.mustRun("start", name, "--id", id)
		h.Append(id, append([]history.Event{at(time.Second, history.Event{Kind: history.TurnStarted, Version: "1.0.0"})}, more...)...)
	}
	mark := func(change, version string) history.Event {
		return at(time.Second, history.Event{Kind: history.VersionMarked, Change: change, Version: version})
	}
	begin("a", "fulfil", mark("carrier", "1"), mark("tax", "2"))
	begin("b", "fulfil", mark("carrier", "2"))
	begin("c", "fulfil", mark("carrier", "10"))
	begin("d", "fulfil")
	begin("over", "fulfil", mark("carrier", "1"), completed(`1`))
	begin("other", "hello")
	begin("anew", "hello", mark("old", "1"), at(time.Second, history.Event{Kind: history.OrchestrationContinuedAsNew, Input: history.Payload("1")}))

	h.mustRun("versions", "--changes")
	h.wantGolden("versions-changes.golden")
	if got := h.mustRun("versions", "--changes", "--name", "hello", "--json"); got != `{"changes":[],"read":2,"complete":true}`+"\n" {
		t.Errorf("of one orchestration: %s", got)
	}
	if code := h.run(t.Context(), "versions", "--changes", "--most", "2"); code == 0 || !strings.Contains(h.err.String(), "2 histories were read, and there are more") {
		t.Errorf("exit %d, %s", code, h.err.String())
	}
	if code := h.run(t.Context(), "versions", "--changes", "--most", "0"); code == 0 || !strings.Contains(h.err.String(), "--most") {
		t.Errorf("exit %d, %s", code, h.err.String())
	}
	h.Damage("x1", fmt.Errorf("h#2: %w", provider.ErrCorrupt))
	if got := h.mustRun("versions", "--changes", "--json"); !strings.Contains(got, `"read":5,"unread":["a"],"complete":true`) {
		t.Errorf("with one that is damaged: %s", got)
	}
}
