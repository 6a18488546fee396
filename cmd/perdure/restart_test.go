package main

import (
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/history"
)

func TestRestart_endedInstance_printsNewID(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.mustRun("start", "hello", "--id", "one", "--input", "7")
	h.wantError(cli.CodeError, "instance has not ended", "restart", "one")
	h.Append("one", completed(`1`))

	id := strings.TrimSpace(h.mustRun("restart", "one"))
	if !strings.HasPrefix(id, "one.restart-") || h.mustRun("restart", "one") != id+"\n" {
		t.Errorf("printed %q, then %q", id, h.out.String())
	}
	if got := h.mustRun("restart", "one", "--id", "two", "--version", "1.0.0", "--delay", "1h",
		"--json"); !strings.HasPrefix(got, `{"instanceId":"two","links":`) {
		t.Errorf("printed %s", got)
	}
	if got := h.mustRun("status", "two"); !strings.Contains(got, "Start at       2026-07-01T04:00:00Z\n") {
		t.Errorf("status: %s", got)
	}
	h.wantError(cli.CodeError, "instance not found", "restart", "missing")
}

func TestRestart_tagsAndKey_overrideTagsAndDeduplicate(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.mustRun("start", "hello", "--id", "one", "--tag", "team=billing", "--tag", "order=7")
	h.Append("one", completed(`1`))
	kept := strings.TrimSpace(h.mustRun("restart", "one"))
	if got := h.mustRun("status", kept); !strings.Contains(got, "order=7") || !strings.Contains(got, "team=billing") {
		t.Errorf("status without --tag: %s", got)
	}

	again := []string{"restart", "one", "--id", "two", "--tag", "cause=fixed", "--idempotency-key"}
	for range 2 {
		if got := h.mustRun(append(again, "k1")...); got != "two\n" {
			t.Errorf("printed %q", got)
		}
	}
	h.wantError(cli.CodeError, "instance ID already in use", append(again, "k2")...)
	if got := h.mustRun("status", "two"); !strings.Contains(got, "cause=fixed") || strings.Contains(got, "order=7") {
		t.Errorf("status with --tag: %s", got)
	}
	h.wantError(cli.CodeError, "--tag", "restart", "one", "--tag", "team")
}

// The error and the history of the new instance name the event of the restart.
func TestRestart_fromEvent_isNamedInErrorAndHistory(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.mustRun("start", "hello", "--id", "one", "--input", "7")
	h.Append("one", at(time.Second, history.Event{Kind: history.TurnStarted, Version: "1.0.0"}),
		at(time.Second, history.Event{Kind: history.ActivityScheduled, Name: "charge"}),
		at(2*time.Second, history.Event{Kind: history.TurnStarted}),
		at(2*time.Second,
			history.Event{Kind: history.ActivityCompleted, SourceEventID: 3, Result: history.Payload("1")}),
		completed(`1`))
	h.wantError(cli.CodeError,
		"--from-event cannot be event 2: the code made further decisions in the same turn; the nearest possible "+
			"events are 1 and 3", "restart", "one", "--from-event", "2")
	h.wantError(cli.CodeError, "must be", "restart", "one", "--from-event", "5", "--version", "2")

	id := strings.TrimSpace(h.mustRun("restart", "one", "--from-event", "5"))
	if !strings.HasPrefix(id, "one.restart-") || h.mustRun("restart", "one", "--from-event", "5") != id+"\n" ||
		h.mustRun("restart", "one") == id+"\n" {
		t.Errorf("printed %q, then %q", id, h.out.String())
	}
	if got := h.mustRun("history", id); !strings.Contains(got, "ExecutionRestarted") ||
		!strings.Contains(got, "from event 5 of instance one, execution x1") {
		t.Errorf("history: %s", got)
	}
}
