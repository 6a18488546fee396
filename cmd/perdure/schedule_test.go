package main

import (
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/perduretest"
)

// The test runs a schedule for a day. Virtual time starts at midnight.
func TestScheduleCommands_runningSchedules_showAndChangeThem(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "report", func(ctx *perdure.OrchestrationContext, of string) (string, error) {
		return of, perdure.Sleep(ctx, 10*time.Minute)
	})
	env := perduretest.New(t, r)
	h := setup(t)
	h.client = env.Client()
	h.mustRun("schedule", "put", "hourly", "--orchestration", "report", "--expression", "0 * * * *", "--input",
		`"sales"`, "--overlap", "queue")
	h.mustRun("schedule", "put", "nightly", "--orchestration", "report", "--version", "0", "--expression",
		"cron(0 2 * * ? *)", "--time-zone", "Europe/Berlin", "--from", "2000-01-02T00:00:00Z", "--input", `"all"`)
	env.Advance(2*time.Hour + 5*time.Minute)
	if got, want := h.mustRun("schedule", "run", "hourly"), "hourly@2000-01-01T02:05:0"; !strings.HasPrefix(got, want) {
		t.Errorf("printed %s, want %s…", got, want)
	}
	env.RunUntilIdle()
	h.mustRun("schedule", "list")
	h.wantGolden("schedules.txt")
	h.mustRun("schedule", "show", "hourly")
	h.wantGolden("schedule.txt")
	if got := h.mustRun("schedule", "show", "nightly", "--json"); !strings.Contains(got,
		`"next":"2000-01-02T01:00:00Z"`) || !strings.Contains(got, `"timeZone":"Europe/Berlin"`) {
		t.Errorf("printed %s", got)
	}
	if got := h.mustRun("schedule", "list", "--limit", "1", "--json"); !strings.Contains(got,
		`"nextCursor":"hourly"`) || strings.Contains(got, `"nightly"`) {
		t.Errorf("printed %s", got)
	}

	h.mustRun("schedule", "backfill", "hourly", "--from", "1999-12-31T22:00:00Z", "--to", "2000-01-01T01:00:00Z")
	env.RunUntilIdle()
	if got := h.mustRun("schedule", "show", "hourly"); !strings.Contains(got,
		"Backfills      1999-12-31T22:00:00Z to 2000-01-01T01:00:00Z\n") {
		t.Errorf("printed %s", got)
	}
	env.Advance(time.Hour)
	if got := h.mustRun("schedule", "show", "hourly"); strings.Contains(got, "Backfills") ||
		!strings.Contains(got, "7 started, 0 failed") {
		t.Errorf("printed %s", got)
	}
	h.wantError(cli.CodeError, "to is before from", "schedule", "backfill", "hourly", "--from", "2000-01-01T01:00:00Z",
		"--to", "2000-01-01T00:00:00Z")
	h.wantError(cli.CodeError, "--to must be an RFC 3339 time", "schedule", "backfill", "hourly", "--from",
		"2000-01-01T01:00:00Z", "--to", "soon")

	h.mustRun("schedule", "pause", "nightly", "--message", "for the migration")
	env.RunUntilIdle()
	if got := h.mustRun("schedule", "list"); !strings.Contains(got, "nightly   Paused ") {
		t.Errorf("printed %s", got)
	}
	h.mustRun("schedule", "run", "nightly")
	env.RunUntilIdle()
	if got := h.mustRun("schedule", "show", "nightly"); !strings.Contains(got, "Paused since ") ||
		!strings.Contains(got, `: "for the migration"`) || !strings.Contains(got, "1 started") {
		t.Errorf("printed %s", got)
	}
	h.mustRun("schedule", "resume", "nightly")
	env.RunUntilIdle()
	if got := h.mustRun("schedule", "list"); !strings.Contains(got, "nightly   Running ") {
		t.Errorf("printed %s", got)
	}
	h.mustRun("schedule", "delete", "hourly")
	env.RunUntilIdle()
	if got := h.mustRun("schedule", "show", "hourly"); !strings.Contains(got,
		"(deleted, ends after its current run)\n") {
		t.Errorf("printed %s", got)
	}
}

func TestScheduleShow_beforeFirstTurn_reportsUnknownDefinition(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, perdure.NewRegistry())
	h := setup(t)
	h.client = env.Client()
	h.mustRun("schedule", "put", "nightly", "--orchestration", "report", "--expression", "@daily")
	got := h.mustRun("schedule", "show", "nightly")
	if !strings.Contains(got, "Definition     unknown until") || strings.Contains(got, "Expression") {
		t.Errorf("printed %s", got)
	}
}

func TestScheduleShow_pausedInstance_showsCallerAndReason(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, perdure.NewRegistry())
	h := setup(t)
	h.client = env.Client()
	h.mustRun("schedule", "put", "nightly", "--orchestration", "report", "--expression", "@daily")
	env.RunUntilIdle()
	h.mustRun("pause", "schedule:nightly", "--message", "for the incident")
	env.RunUntilIdle()
	got := h.mustRun("schedule", "show", "nightly")
	want := "Status         Paused\n               instance paused since 2000-01-01T00:00:00Z"
	if !strings.Contains(got, want) || !strings.Contains(got, `: "for the incident"`) ||
		!strings.Contains(got, "Next run       —\n") {
		t.Errorf("printed %s", got)
	}

	h.mustRun("schedule", "pause", "nightly", "--message", "for the migration")
	h.mustRun("resume", "schedule:nightly")
	env.RunUntilIdle()
	got = h.mustRun("schedule", "show", "nightly")
	if !strings.Contains(got, `: "for the migration"`) || strings.Contains(got, "instance paused") {
		t.Errorf("printed %s", got)
	}
}

func TestScheduleShow_blockedRun_showsItsStatus(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, perdure.NewRegistry())
	h := setup(t)
	h.client = env.Client()
	h.mustRun("schedule", "put", "hourly", "--orchestration", "misspelled", "--expression", "@hourly")
	env.Advance(2*time.Hour + time.Minute)
	const run = "hourly@2000-01-01T01:00:00Z Blocked, started 2000-01-01T01:00:00Z\n"
	if got := h.mustRun("schedule", "show", "hourly"); !strings.Contains(got, "Current run    "+run) {
		t.Errorf("printed %s", got)
	}
	h.mustRun("cancel", "schedule:hourly")
	env.RunUntilIdle()
	got := h.mustRun("schedule", "show", "hourly")
	if !strings.Contains(got, "Last run       "+run) || !strings.Contains(got, "Next run       —\n") {
		t.Errorf("printed %s", got)
	}
	if got := h.mustRun("schedule", "list"); strings.Contains(got, "running since") {
		t.Errorf("printed %s", got)
	}
}

func TestScheduleCommands_invalidArguments_areErrors(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.wantError(cli.CodeError, "missing argument SCHEDULE", "schedule", "put")
	h.wantError(cli.CodeError, "--orchestration is required", "schedule", "put", "s", "--expression", "@daily")
	h.wantError(cli.CodeError, `--expression "often": must be like "rate(5 minutes)"`, "schedule", "put", "s",
		"--orchestration", "hello", "--expression", "often")
	h.wantError(cli.CodeError, "--from must be an RFC 3339 time", "schedule", "put", "s", "--orchestration", "hello",
		"--expression", "@daily", "--from", "soon")
	h.wantError(cli.CodeError, `schedule not found in hub "default"`, "schedule", "show", "missing")
	h.wantError(cli.CodeError, `schedule not found in hub "default"`, "schedule", "resume", "missing")
}
