package schedule_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/schedule"
)

// newJobHub returns a hub with an orchestration "job" that ends at once.
func newJobHub(t *testing.T) *perduretest.Env {
	t.Helper()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(
		r, "job", func(*perdure.OrchestrationContext, json.RawMessage) (int, error) { return 0, nil },
	)
	return perduretest.New(t, r)
}

func TestSchedule_rangeEndsOnSunday_runsOnSunday(t *testing.T) {
	t.Parallel()
	for when, want := range map[string]int{
		"0 2 * * MON-SUN": 7, "0 2 * * FRI-SUN": 3, "0 2 * * 1-7": 7, "0 2 * * 5-7": 3, "0 2 * * SAT-MON": 3,
		"cron(0 2 ? * 6-1 *)": 3, "cron(0 2 ? * MON-SUN *)": 7, "cron(0 2 ? * SUN-SAT *)": 7,
	} {
		env := newJobHub(t)
		if err := env.Client().Schedules().Put(t.Context(), schedule.Schedule{
			ID: "s", Orchestration: "job", Expression: when,
		}); err != nil {
			t.Errorf("%s: got error %v", when, err)
			continue
		}
		env.Advance(7 * 24 * time.Hour)
		runs, sundays := 0, 0
		for s, err := range env.Client().List(t.Context(), client.ListQuery{Orchestration: "job"}) {
			if err != nil {
				t.Fatal(err)
			}
			runs++
			if due, ok := schedule.DueTime(s.InstanceID); ok && due.Weekday() == time.Sunday {
				sundays++
			}
		}
		if runs != want || sundays != 1 {
			t.Errorf("%s: got %d runs in a week, %d of them on Sunday, want %d and 1", when, runs, sundays, want)
		}
	}
}

func TestPutSchedule_invalidExpression_isAFieldError(t *testing.T) {
	t.Parallel()
	env := newJobHub(t)
	for when, problem := range map[string]string{
		"22-6 2 * * *":            "range is reversed; write 22-59,0-6",
		"0 22-6 * * *":            "range is reversed; write 22-23,0-6",
		"0 2 1 DEC-JAN *":         "range is reversed; write 12,1",
		"cron(0 2 * * * *)":       `exactly one of day and day of week must be "?"`,
		"cron(0 2 1 * MON *)":     `exactly one of day and day of week must be "?"`,
		"cron(0 2 ? * ? *)":       `exactly one of day and day of week must be "?"`,
		"cron(0 2 ? * 3#1,6#3 *)": "a list must not contain #",
		"0 2 */2 * MON":           "neither may have a step of *",
	} {
		s := schedule.Schedule{ID: "s", Orchestration: "job", Expression: when}
		err := env.Client().Schedules().Put(t.Context(), s)
		field, ok := errors.AsType[*provider.FieldError](err)
		if !ok || field.Field != "when" || !strings.Contains(field.Problem, problem) {
			t.Errorf("%s: got %v, want a field error with %q", when, err, problem)
		}
	}
}

// An upgrade must not end a schedule that an earlier release accepted.
func TestSchedule_storedByAnEarlierRelease_keepsRunning(t *testing.T) {
	t.Parallel()
	env := newJobHub(t)
	stored := schedule.State{
		Schedule: schedule.Schedule{ID: "s", Orchestration: "job", Expression: "cron(0 2 * * * *)"},
	}
	if _, err := env.Client().Start(
		t.Context(), schedule.OrchestrationName, stored, client.WithInstanceID(schedule.InstanceID("s")),
	); err != nil {
		t.Fatal(err)
	}
	env.Advance(24 * time.Hour)
	changed := stored.Schedule
	changed.Expression = "cron(0 3 1 * SUN *)"
	if err := env.Client().RaiseEvent(
		t.Context(), schedule.InstanceID("s"), schedule.CommandEvent, schedule.Command{Replace: &changed},
	); err != nil {
		t.Fatal(err)
	}
	env.Advance(24 * time.Hour) // to Monday, 2000-01-03
	var runs []string
	for s, err := range env.Client().List(t.Context(), client.ListQuery{Orchestration: "job"}) {
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, s.InstanceID)
	}
	if got, want := strings.Join(runs, " "), "s@2000-01-02T03:00:00Z s@2000-01-01T02:00:00Z"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
