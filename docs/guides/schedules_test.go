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
