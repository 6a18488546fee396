package main

import (
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/history"
)

func TestBulkCommands_filter_createJobOnlyIfConfirmed(t *testing.T) {
	t.Parallel()
	h := setup(t)
	for _, id := range []string{"one", "two", "over"} {
		h.mustRun("start", "hello", "--id", id)
	}
	h.Append("over", at(0, history.Event{Kind: history.OrchestrationCompleted}))
	h.admin = admin.New(h.Provider, admin.WithClock(func() time.Time { return began.Add(time.Hour) }))
	if got := h.mustRun("purge", "--name", "hello", "--dry-run"); got != "instances to purge: 1\n  over\n" {
		t.Errorf("a dry run prints %q", got)
	}
	if got := h.mustRun("cancel", "--name", "hello", "--dry-run",
		"--json"); got != `{"matched":2,"sample":["one","two"],"startedBefore":"2026-07-01T04:00:00Z","complete":true}`+
		"\n" {
		t.Errorf("a dry run prints %q", got)
	}
	if got := h.mustRun("jobs"); strings.Count(got, "\n") != 1 {
		t.Errorf("a dry run created a job: %q", got)
	}
	h.in = "no\n"
	if code := h.run(t.Context(), "purge", "--name", "hello"); code != cli.CodeError ||
		!strings.Contains(h.err.String(), "nothing was changed") {
		t.Errorf("exit %d, %s", code, h.err.String())
	}
	h.in = "yes\n"
	first := strings.TrimSpace(h.mustRun("purge", "--name", "hello"))
	h.in = ""
	second := strings.TrimSpace(h.mustRun("terminate", "--all", "--message", "closed", "--yes"))
	if got := h.mustRun("jobs"); !strings.Contains(got, first+"  purge") ||
		!strings.Contains(got, second+"  terminate") {
		t.Errorf("jobs:\n%s", got)
	}
	if got := h.mustRun("jobs", "cancel", first); !strings.Contains(got, "Cancelled") {
		t.Errorf("cancelled:\n%s", got)
	}
	h.wantError(cli.CodeError, "job missing not found", "jobs", "cancel", "missing")
	for want, args := range map[string][]string{
		"specify an ID or a filter":               {"purge", "one", "--name", "hello"},
		"require a filter":                        {"purge", "one", "--dry-run"},
		"without force":                           {"purge", "--status", "Running", "--dry-run"},
		"cancel does not apply to it":             {"cancel", "--status", "Failed", "--dry-run"},
		"all cannot be combined with":             {"purge", "--all", "--name", "hello", "--dry-run"},
		"--older-than is":                         {"purge", "--older-than", "thirty", "--dry-run"},
		"is not KEY=VALUE":                        {"purge", "--tag", "a", "--dry-run"},
		"set more than once":                      {"purge", "--tag", "a=1", "--tag", "a=2", "--dry-run"},
		"--name must not be empty":                {"purge", "--name", "", "--status", "Completed", "--yes"},
		"--status must not be empty":              {"terminate", "--name", "hello", "--status", "", "--yes"},
		"--parent must not be empty":              {"cancel", "--parent=", "--yes"},
		"--activity requires an instance ID":      {"cancel", "--name", "hello", "--activity", "12", "--yes"},
		"--with-children requires an instance ID": {"purge", "--name", "hello", "--with-children", "--yes"},
		"missing argument ID":                     {"terminate"},
	} {
		h.wantError(cli.CodeError, want, args...)
	}
	if got := h.mustRun("jobs"); strings.Count(got, "\n") != 3 {
		t.Errorf("a rejected command created a job:\n%s", got)
	}
}

// An instance that starts during the confirmation prompt was not in the preview, so the job skips it.
func TestBulkCommands_instanceStartsDuringPrompt_isNotSelected(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.mustRun("start", "hello", "--id", "one")
	now := began
	h.admin = admin.New(h.Provider, admin.WithClock(func() time.Time { now = now.Add(time.Hour); return now }))
	for _, selects := range []string{"--name=hello", "--all"} {
		h.in = "yes\n"
		h.mustRun("terminate", selects)
		jobs, err := client.Collect(h.admin.Jobs(t.Context()))
		if err != nil || !jobs[0].Filter.StartedBefore.Before(jobs[0].CreatedAt) {
			t.Errorf("%s: the job at %v includes instances started before %v, %v", selects, jobs[0].CreatedAt,
				jobs[0].Filter.StartedBefore, err)
		}
	}
}
