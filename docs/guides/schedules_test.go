package guides_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/schedule"
)

type reportInput struct{ Topic string }

type sumInput struct{ Topic, Day string }

// scheduleReport runs a report every day at 02:00.
func scheduleReport(ctx context.Context, hub *client.Client) error {
	return hub.Schedules().Put(ctx, schedule.Schedule{
		ID: "nightly", Orchestration: "report", Input: json.RawMessage(`{"topic":"sales"}`),
		Expression: "0 2 * * *", TimeZone: "Europe/Berlin",
		Overlap: schedule.OverlapQueue, CatchUp: schedule.CatchUpAll,
	})
}

// berlin is loaded outside of the orchestration.
var berlin, _ = time.LoadLocation("Europe/Berlin")

// report computes the report of the scheduled day.
func report(ctx *perdure.OrchestrationContext, in reportInput) (string, error) {
	day, ok := schedule.DueTime(ctx.InstanceID())
	if !ok {
		day = ctx.Now() // not started by the schedule
	}
	sum := sumInput{Topic: in.Topic, Day: day.In(berlin).Format(time.DateOnly)}
	return perdure.CallActivityByName[string](ctx, "sum-up", sum).Await(ctx)
}

// backfillYear runs the missing reports of this year.
func backfillYear(ctx context.Context, hub *client.Client, now time.Time) error {
	return hub.Schedules().Backfill(ctx, "nightly", time.Date(now.Year(), 1, 1, 0, 0, 0, 0, time.UTC), now)
}

func TestBackfill_repeated_runsMissingDaysOnce(t *testing.T) {
	t.Parallel()
	var days []string
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "report", report)
	perdure.AddActivity(r, "sum-up", func(_ context.Context, s sumInput) (string, error) {
		days = append(days, s.Day)
		return "sums", nil
	})
	env := perduretest.New(t, r)
	env.Advance(3 * 24 * time.Hour)
	if err := scheduleReport(t.Context(), env.Client()); err != nil {
		t.Fatal(err)
	}
	env.Advance(24 * time.Hour)
	for range 2 {
		if err := backfillYear(t.Context(), env.Client(), env.Now()); err != nil {
			t.Fatal(err)
		}
		env.Advance(10 * time.Minute)
	}
	if got := strings.Join(days, ", "); got != "2000-01-04, 2000-01-01, 2000-01-02, 2000-01-03" {
		t.Errorf("reported %s", got)
	}
}

func TestSchedule_threeDays_runsThreeTimes(t *testing.T) {
	t.Parallel()
	var days []string
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "report", report)
	perdure.AddActivity(r, "sum-up", func(_ context.Context, s sumInput) (string, error) {
		days = append(days, s.Topic+" of "+s.Day)
		return "sums", nil
	})
	env := perduretest.New(t, r)
	if err := scheduleReport(t.Context(), env.Client()); err != nil {
		t.Fatal(err)
	}
	env.Advance(3 * 24 * time.Hour)
	if got := strings.Join(days, ", "); got != "sales of 2000-01-01, sales of 2000-01-02, sales of 2000-01-03" {
		t.Errorf("reported %s", got)
	}
	s, err := env.Client().Schedules().Get(t.Context(), "nightly")
	if err != nil || s.Started != 3 || s.Failed != 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

// A purged run starts again with the current input and its ID. A restarted run has the old input and another ID, with
// the same scheduled time.
func TestSchedule_runAgain_purgeUsesNewInputRestartOldInput(t *testing.T) {
	t.Parallel()
	var days []string
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "report", report)
	perdure.AddActivity(r, "sum-up", func(_ context.Context, s sumInput) (string, error) {
		days = append(days, s.Topic+" of "+s.Day)
		return "sums", nil
	})
	env := perduretest.New(t, r)
	cl := env.Client()
	if err := scheduleReport(t.Context(), cl); err != nil {
		t.Fatal(err)
	}
	env.Advance(24 * time.Hour)
	s, err := cl.Schedules().Get(t.Context(), "nightly")
	if err != nil || s.LastRun == nil {
		t.Fatalf("%+v, %v", s, err)
	}
	changed := s.Schedule
	changed.Input = json.RawMessage(`{"topic":"costs"}`)
	run, due := s.LastRun.InstanceID, s.LastRun.Due
	restarted, err := cl.Restart(t.Context(), run)
	if err != nil || !strings.HasPrefix(restarted, run+".restart-") {
		t.Fatalf("%s, %v", restarted, err)
	}
	env.RunUntilIdle()
	for _, err := range []error{
		cl.Schedules().Put(t.Context(), changed), cl.Purge(t.Context(), run),
		cl.Schedules().Backfill(t.Context(), "nightly", due, due),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	env.Advance(time.Minute)
	if got := strings.Join(days, ", "); got != "sales of 2000-01-01, sales of 2000-01-01, costs of 2000-01-01" {
		t.Errorf("reported %s", got)
	}
}

// The policy at the resume applies to the times of a pause, except those before a put during the pause.
func TestSchedule_pauseOverHolidays_appliesCatchUpOfResume(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		putAfter time.Duration // time from the pause to the put of CatchUpNone, 0 for the original definition
		runs     int64
	}{
		"original policy": {0, 4}, "changed immediately": {time.Minute, 1}, "changed after two days": {48 * time.Hour, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := perdure.NewRegistry()
			perdure.AddOrchestration(r, "report", report)
			perdure.AddActivity(r, "sum-up", func(context.Context, sumInput) (string, error) { return "sums", nil })
			env := perduretest.New(t, r)
			schedules := env.Client().Schedules()
			if err := scheduleReport(t.Context(), env.Client()); err != nil {
				t.Fatal(err)
			}
			env.Advance(24 * time.Hour)
			if err := schedules.Pause(t.Context(), "nightly", "holidays"); err != nil {
				t.Fatal(err)
			}
			env.Advance(test.putAfter)
			if s, err := schedules.Get(t.Context(), "nightly"); err != nil {
				t.Fatal(err)
			} else if changed := s.Schedule; test.putAfter > 0 {
				changed.CatchUp, changed.Input = schedule.CatchUpNone, json.RawMessage(`{"topic":"sales"}`)
				if err := schedules.Put(t.Context(), changed); err != nil {
					t.Fatal(err)
				}
			}
			env.Advance(72*time.Hour - test.putAfter)
			if err := schedules.Resume(t.Context(), "nightly", ""); err != nil {
				t.Fatal(err)
			}
			env.Advance(time.Minute)
			if s, err := schedules.Get(t.Context(), "nightly"); err != nil || s.Started != test.runs {
				t.Errorf("%d runs, want %d, %v", s.Started, test.runs, err)
			}
		})
	}
}
