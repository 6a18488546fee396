package main

import (
	"strings"
	"testing"
)

func TestRestart(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.mustRun("start", "hello", "--id", "one", "--input", "7")
	h.wantError(exitError, "the instance is not over", "restart", "one")
	h.Append("one", completed(`1`))

	id := strings.TrimSpace(h.mustRun("restart", "one"))
	if !strings.HasPrefix(id, "one.restart-") || h.mustRun("restart", "one") != id+"\n" {
		t.Errorf("printed %q, then %q", id, h.out.String())
	}
	if got := h.mustRun("restart", "one", "--id", "two", "--version", "1.0.0", "--delay", "1h", "--json"); !strings.HasPrefix(got, `{"instanceId":"two","links":`) {
		t.Errorf("printed %s", got)
	}
	if got := h.mustRun("status", "two"); !strings.Contains(got, "To begin       2026-07-01T04:00:00Z\n") {
		t.Errorf("status: %s", got)
	}
	h.wantError(exitError, "no such instance", "restart", "nobody")
}
