package schedule_test

import (
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/schedule"
)

// A run has the version and the input of its schedule, or no input.
func TestRun_startsWithVersionAndInputOfSchedule(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	for _, version := range []string{"1", "2"} {
		perdure.AddOrchestration(
			r, "report", func(_ *perdure.OrchestrationContext, in *int) (bool, error) { return in == nil, nil },
			perdure.WithVersion(version),
		)
	}
	env := perduretest.New(t, r)
	for id, s := range map[string]schedule.Schedule{
		"waited": {Version: "1"}, "beside": {Version: "1", Overlap: schedule.OverlapAllow}, "any": {},
	} {
		s.ID, s.Orchestration, s.Expression = id, "report", "*/5 * * * *"
		if err := env.Client().Schedules().Put(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	env.Advance(6 * time.Minute)
	for id, want := range map[string]string{"waited": "1", "beside": "1", "any": "2"} {
		run, err := env.Client().Status(t.Context(), id+"@2000-01-01T00:05:00Z")
		if err != nil || run.Version != want || string(run.Output) != "true" {
			t.Errorf("%s: got version %s, output %s, error %v", id, run.Version, run.Output, err)
		}
	}
}

// The next run waits until the cancelled one has cleaned up. If several times are due in between, the last one counts.
func TestOverlapCancel_runCleansUp_nextRunWaits(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "report", func(ctx *perdure.OrchestrationContext, _ any) (bool, error) {
		err := perdure.Sleep(ctx, time.Hour)
		return true, errors.Join(err, perdure.Sleep(perdure.WithoutCancel(ctx), 12*time.Minute))
	})
	env := perduretest.New(t, r)
	h := &hub{Env: env, t: t}
	h.put(schedule.Schedule{
		ID: "s", Orchestration: "report", Expression: "*/5 * * * *", Overlap: schedule.OverlapCancel,
	})
	h.Advance(21 * time.Minute) // the first run is cancelled at 00:10 and ends at 00:22
	if s := h.status(); s.Started != 1 || s.CurrentRun == nil {
		t.Errorf("got %+v", s)
	}
	h.Advance(2 * time.Minute)
	s := h.status()
	if s.Started != 2 || s.CurrentRun == nil || s.CurrentRun.Due.Format("15:04") != "00:20" || s.LastRun == nil ||
		s.LastRun.Outcome != schedule.OutcomeCancelled || s.Skipped != 2 || s.Queued != 0 {
		t.Errorf("got %+v", s)
	}
}

// A manual run of a schedule with OverlapCancel cancels the running one.
func TestRunNow_overlapCancel_cancelsRun(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.put(every5(4*time.Minute, schedule.OverlapCancel, ""))
	h.Advance(6 * time.Minute)
	if _, err := h.Client().Schedules().Trigger(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	h.Advance(time.Minute)
	h.want("00:05 00:06", "00:05")
}

// A rate counts from the put that set it. Other changes do not restart it.
func TestRate_countsFromPut(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	s := every5(time.Second, "", "")
	next := func(when string, input string, want string) {
		t.Helper()
		s.Expression, s.Input = when, []byte(input)
		h.put(s)
		if got := h.status().NextDue.Format("15:04"); got != want {
			t.Errorf("%s: next time: got %s, want %s", when, got, want)
		}
	}
	next("rate(10 minutes)", "1", "00:10")
	h.Advance(7 * time.Minute)
	next("rate(10 minutes)", "2", "00:10")
	next("rate(15 minutes)", "2", "00:22")
}

// A command cannot change the ID of a schedule.
func TestReplace_otherID_keepsID(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.put(every5(time.Second, "", ""))
	other := every5(time.Second, "", "")
	other.ID = "other"
	if err := h.Client().RaiseEvent(
		t.Context(), schedule.InstanceID("s"), schedule.CommandEvent, schedule.Command{Replace: &other},
	); err != nil {
		t.Fatal(err)
	}
	h.Advance(6 * time.Minute)
	if s := h.status(); s.Schedule.ID != "s" || s.LastRun == nil || s.LastRun.InstanceID != "s@2000-01-01T00:05:00Z" {
		t.Errorf("got %+v", s)
	}
}

// Times before a change follow the previous definition.
func TestReplace_appliesToLaterTimesOnly(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.put(every5(time.Second, "", schedule.CatchUpAll))
	h.Advance(4*time.Minute + 30*time.Second)
	each := every5(time.Second, "", schedule.CatchUpAll)
	each.Expression = "* * * * *"
	h.put(each)
	h.Advance(time.Minute)
	h.want("00:05", "")
	if s := h.status(); s.Missed != 0 || s.Started != 1 {
		t.Errorf("got %+v", s)
	}
}

// More times are due during a run than the queue holds.
func TestOverlap_longRun_queueIsLimited(t *testing.T) {
	t.Parallel()
	for overlap, want := range map[schedule.OverlapPolicy]struct{ queued, skipped, missed int64 }{
		schedule.OverlapSkip:  {0, 1440, 0},
		schedule.OverlapQueue: {schedule.MaxQueuedRuns - 1, 0, 440}, // plus the running one
	} {
		h := newHub(t)
		s := every5(24*time.Hour, overlap, "")
		s.Expression = "* * * * *"
		h.put(s)
		h.Advance(24*time.Hour + 90*time.Second)
		if got := h.status(); int64(got.Queued) != want.queued || got.Skipped != want.skipped ||
			got.Missed != want.missed {
			t.Errorf("%s: got %d queued, %+v", overlap, got.Queued, got.Counts)
		}
	}
}
