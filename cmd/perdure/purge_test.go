package main

import (
	"testing"

	"github.com/perdure/perdure/history"
)

func TestPurge(t *testing.T) {
	t.Parallel()
	h := setup(t)
	for _, id := range []string{"one", "two", "over"} {
		h.mustRun("start", "hello", "--id", id)
	}
	h.Append("over", at(0, history.Event{Kind: history.OrchestrationCompleted}))
	h.wantError(exitError, "purge it with --force", "purge", "one")
	for _, args := range [][]string{{"purge", "over"}, {"purge", "one", "--force"}, {"purge", "two", "--force", "--json"}} {
		if got := h.mustRun(args...); got != "" {
			t.Errorf("%v printed %q", args, got)
		}
		h.wantError(exitError, "no such instance", args...)
	}
	h.wantError(exitError, "ID is missing", "purge")
	h.wantError(exitError, `"x" is one argument too many`, "purge", "one", "x")
}
