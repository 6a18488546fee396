package schedule_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/schedule"
)

// clock returns a time of the day on which virtual time starts, or of the day before: "-23:50".
func clock(t *testing.T, text string) time.Time {
	t.Helper()
	day := 1
	text, before := strings.CutPrefix(text, "-")
	if before {
		day = 0
	}
	at, err := time.Parse("15:04", text)
	if err != nil {
		t.Fatal(err)
	}
	return time.Date(2000, 1, day, at.Hour(), at.Minute(), 0, 0, time.UTC)
}

func (h *hub) backfill(from, to string) {
	h.t.Helper()
	if err := h.Client().Schedules().Backfill(h.t.Context(), "s", clock(h.t, from), clock(h.t, to)); err != nil {
		h.t.Fatal(err)
	}
	h.RunUntilIdle()
}

// Each time of a window gets one run, in order, also before the creation of the schedule. Times with a run are skipped,
// even if it failed.
func TestBackfill_repeatedWindow_startsEachTimeOnce(t *testing.T) {
	t.Parallel()
	for overlap, takes := range map[schedule.OverlapPolicy]time.Duration{
		schedule.OverlapSkip: 10 * time.Second, schedule.OverlapQueue: 10 * time.Second,
		schedule.OverlapCancel: 10 * time.Second, schedule.OverlapAllow: 10 * time.Second, "": -1,
	} {
		t.Run(string(overlap), func(t *testing.T) {
			t.Parallel()
			h := newHub(t)
			h.put(every5(takes, overlap, ""))
			h.Advance(11 * time.Minute)
			for range 3 {
				h.backfill("-23:50", "00:10")
				h.Advance(time.Minute)
			}
			h.Advance(2 * time.Minute)
			want := "00:05 00:10 23:50 23:55 00:00 00:15"
			h.want(want, "")
			s := h.status()
			if overlap != schedule.OverlapAllow && s.Started != 6 || s.Skipped != 0 || len(s.Backfills) != 0 ||
				takes > 0 && s.Failed != 0 || takes < 0 && s.Failed != 6 {
				t.Errorf("got %+v", s)
			}
		})
	}
}

// A window includes both of its ends. Times in the future are not backfilled.
func TestBackfill_windowInTheFuture_endsNow(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.put(every5(time.Second, "", ""))
	h.Advance(11 * time.Minute)
	if err := h.Client().RaiseEvent(t.Context(), schedule.InstanceID("s"), schedule.CommandEvent, schedule.Command{
		Backfill: &schedule.BackfillWindow{From: clock(t, "00:00"), To: clock(t, "00:20")},
	}); err != nil {
		t.Fatal(err) // like a client whose clock is ahead
	}
	h.Advance(10 * time.Minute)
	h.want("00:05 00:10 00:00 00:15 00:20", "")
	if s := h.status(); s.Started != 5 || s.Failed != 0 {
		t.Errorf("got %+v", s)
	}
}

// A time that is due during a backfill is not skipped, cancels no run, and starts next.
func TestBackfill_timeIsDue_startsBeforeBackfill(t *testing.T) {
	t.Parallel()
	for _, overlap := range []schedule.OverlapPolicy{
		schedule.OverlapSkip, schedule.OverlapQueue, schedule.OverlapCancel,
	} {
		h := newHub(t)
		h.put(every5(110*time.Second, overlap, ""))
		h.backfill("-23:30", "-23:55")
		h.Advance(16 * time.Minute)
		h.want("23:30 23:35 23:40 00:05 23:45 23:50 00:10 23:55 00:15", "")
		if s := h.status(); s.Skipped != 0 || s.Missed != 0 {
			t.Errorf("%s: got %+v", overlap, s)
		}
	}
}

// A thousand runs do not fit one history. The run at the time of a deletion is the last one.
func TestBackfill_longWindow_spansExecutions(t *testing.T) {
	t.Parallel()
	for _, overlap := range []schedule.OverlapPolicy{schedule.OverlapSkip, schedule.OverlapAllow} {
		h := newHub(t)
		s := every5(0, overlap, "")
		s.Expression = "rate(1 minute)"
		s.Until = h.Now().Add(time.Second)
		h.put(s)
		if err := h.Client().Schedules().Backfill(
			t.Context(), "s", h.Now().Add(-999*time.Minute-time.Second), h.Now(),
		); err != nil {
			t.Fatal(err)
		}
		h.Advance(30 * time.Second)
		h.mu.Lock()
		if len(h.began) != 1000 || h.began[0] != "07:21" ||
			h.began[999] != "00:00" && overlap != schedule.OverlapAllow {
			t.Errorf("%s: got %d runs: %v", overlap, len(h.began), h.began[:min(3, len(h.began))])
		}
		h.mu.Unlock()
		events, err := client.Collect(h.Client().History(t.Context(), schedule.InstanceID("s")))
		if err != nil || len(events) > 300 {
			t.Errorf("%s: got %d events in the last execution, error %v", overlap, len(events), err)
		}
		if s := h.status(); s.Started != 1000 || s.Failed != 0 || len(s.Backfills) > 0 {
			t.Errorf("%s: got %+v", overlap, s)
		}
	}
}

func TestDelete_duringBackfill_endsBackfill(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.put(every5(time.Minute, "", ""))
	h.backfill("-20:00", "-23:55")
	if s := h.status(); len(s.Backfills) != 1 || !s.Backfills[0].To.Equal(clock(t, "-23:55")) || s.CurrentRun == nil {
		t.Errorf("got %+v", s)
	}
	if err := h.Client().Schedules().Delete(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	h.RunUntilIdle()
	err := h.Client().Schedules().Backfill(t.Context(), "s", clock(t, "-20:00"), clock(t, "-23:55"))
	if !errors.Is(err, client.ErrEnded) {
		t.Errorf("deleted schedule: got error %v", err)
	}
	h.Advance(time.Hour)
	h.want("20:00", "")
	if s := h.status(); s.RuntimeStatus != client.StatusCompleted {
		t.Errorf("got %+v", s)
	}
}

// After a crash at any call, no run is repeated or missing.
func TestBackfill_crashAtAnyCall_startsEachTimeOnce(t *testing.T) {
	t.Parallel()
	perduretest.CrashAtEveryCall(t, func(t *testing.T, crashes perduretest.Option) *perduretest.Env {
		t.Helper()
		h := newHub(t, crashes)
		s := every5(time.Second, "", "")
		s.Until = h.Now()
		h.put(s)
		h.backfill("-23:50", "00:00")
		h.Advance(6 * time.Hour)
		runs := map[string]int{}
		h.mu.Lock()
		for _, r := range h.began {
			runs[r]++
		}
		h.mu.Unlock()
		if len(runs) != 3 {
			t.Errorf("got runs %v", runs)
		}
		if got, err := client.Collect(
			h.Client().List(t.Context(), client.ListQuery{Orchestration: "report"}),
		); err != nil || len(got) != 3 {
			t.Errorf("got %d runs, error %v", len(got), err)
		}
		return h.Env
	})
}

func TestValidateWindow_invalidWindow_isAFieldError(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
	minutely := schedule.Schedule{Expression: "rate(1 minute)"}
	for name, c := range map[string]struct {
		s        schedule.Schedule
		from, to time.Time
		field    string
	}{
		"10,000 times": {minutely, now.Add(-10_000*time.Minute + time.Second), now, ""},
		"more":         {minutely, now.Add(-10_001 * time.Minute), now, "from"},
		"a million":    {minutely, now.AddDate(-2, 0, 0), now, "from"},
		"nights of many years": {
			schedule.Schedule{
				Expression: "0 2 * * *", TimeZone: "Europe/Berlin",
			}, time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC), now, "from",
		},
		"empty window": {schedule.Schedule{Expression: "0 2 * * *"}, now, now, ""},
		"bounded by the schedule": {
			schedule.Schedule{Expression: "rate(1 minute)", From: now.Add(-time.Hour)}, now.AddDate(-20, 0, 0), now, "",
		},
		"reversed":            {minutely, now, now.Add(-1), "to"},
		"in the future":       {minutely, now, now.Add(1), "to"},
		"without a beginning": {minutely, time.Time{}, now, "from"},
		"without an end":      {minutely, now, time.Time{}, "to"},
		"before 1970":         {minutely, time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC), now, "from"},
	} {
		err := c.s.ValidateWindow(schedule.BackfillWindow{From: c.from, To: c.to}, now)
		field, reported := errors.AsType[*provider.FieldError](err)
		if c.field == "" && err != nil || c.field != "" && (!reported || field.Field != c.field) {
			t.Errorf("%s: got error %v", name, err)
		}
	}
}

// An earlier release ignores a command to backfill, and its state is read without changes.
func TestBackfill_format_isCompatible(t *testing.T) {
	t.Parallel()
	w := schedule.BackfillWindow{From: time.Unix(0, 0).UTC(), To: time.Unix(60, 0).UTC()}
	for want, v := range map[string]any{
		`{"backfill":{"from":"1970-01-01T00:00:00Z","to":"1970-01-01T00:01:00Z"}}`: schedule.Command{
			Backfill: &w,
		},
		`{"schedule":{"id":"","orchestration":"","when":""},"backfills":[{"from":"1970-01-01T00:00:00Z","to":"1970-01-01T00:01:00Z"}]}`: schedule.State{
			Backfills: []schedule.BackfillWindow{w},
		},
		`{"schedule":{"id":"","orchestration":"","when":""}}`: schedule.State{},
	} {
		got, err := json.Marshal(v)
		if err != nil || string(got) != want {
			t.Errorf("got %s, error %v", got, err)
		}
	}
}
