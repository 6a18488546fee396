package schedule_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/schedule"
)

// The twentieth run is the last one of its execution. A schedule that is deleted during this run ends.
func TestDelete_lastRunOfExecution_ends(t *testing.T) {
	t.Parallel()
	for runs := 18; runs <= 22; runs++ {
		h := newHub(t)
		h.put(every5(2*time.Minute, "", ""))
		h.Advance(time.Duration(runs)*5*time.Minute + time.Minute)
		if err := h.Client().Schedules().Delete(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		h.Advance(time.Hour)
		if s := h.status(); s.RuntimeStatus != client.StatusCompleted || int(s.Started) != runs {
			t.Errorf("after %d runs: got %s, %d started", runs, s.RuntimeStatus, s.Started)
		}
	}
}

// The run continues, and other runs start at the same time.
func TestReplace_toOverlapAllow_doesNotWait(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.put(every5(24*time.Hour, "", ""))
	h.Advance(6 * time.Minute)
	h.put(every5(time.Second, schedule.OverlapAllow, ""))
	h.Advance(15 * time.Minute)
	h.want("00:05 00:10 00:15 00:20", "")
	if s := h.status(); s.Started != 4 || s.Skipped != 0 || s.CurrentRun == nil {
		t.Errorf("got %+v", s)
	}
}

// Each deployment and each starting process puts the same schedule.
func TestPut_manyUnchanged_historyStaysShort(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	s := every5(time.Second, "", "")
	s.Expression = "@monthly"
	for range 300 {
		h.put(s)
		h.Advance(time.Second)
	}
	events, err := client.Collect(h.Client().History(t.Context(), schedule.InstanceID("s")))
	if err != nil || len(events) > 400 {
		t.Errorf("got %d events, error %v", len(events), err)
	}
	if s := h.status(); s.RuntimeStatus != client.StatusRunning {
		t.Errorf("got %+v", s)
	}
}

func TestPut_unchanged_cancelsNoRun(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	s := every5(time.Minute, schedule.OverlapCancel, schedule.CatchUpAll)
	h.put(s)
	h.Advance(7 * time.Minute)
	if err := h.Client().Schedules().Pause(t.Context(), "s", ""); err != nil {
		t.Fatal(err)
	}
	h.Advance(14 * time.Minute)
	if err := h.Client().Schedules().Resume(t.Context(), "s", ""); err != nil {
		t.Fatal(err)
	}
	h.RunUntilIdle()
	h.put(s)
	h.Advance(3*time.Minute + 30*time.Second)
	h.want("00:05 00:10 00:15 00:20", "")
}

// The last time has passed, and the schedule is put again before its end is visible.
func TestPut_atEnd_isNotLost(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	s := every5(time.Second, "", "")
	s.Until = h.Now().Add(5 * time.Minute)
	h.put(s)
	h.Advance(5*time.Minute + 3*time.Second)
	if got := h.status(); got.LastRun == nil {
		t.Fatalf("got %+v", got)
	}
	s.Until = time.Time{}
	h.put(s)
	h.Advance(5 * time.Minute)
	if s := h.status(); s.Started != 2 || s.RuntimeStatus != client.StatusRunning {
		t.Errorf("got %+v", s)
	}
}

// The runs that were missed in a night need more than one execution.
func TestCatchUpAll_manyTimes_spansExecutions(t *testing.T) {
	t.Parallel()
	for _, overlap := range []schedule.OverlapPolicy{schedule.OverlapAllow, schedule.OverlapQueue} {
		h := newHub(t)
		s := every5(0, overlap, schedule.CatchUpAll)
		s.Expression = "* * * * *"
		h.put(s)
		if err := h.Client().Schedules().Pause(t.Context(), "s", ""); err != nil {
			t.Fatal(err)
		}
		h.Advance(5 * time.Hour)
		if err := h.Client().Schedules().Resume(t.Context(), "s", ""); err != nil {
			t.Fatal(err)
		}
		h.Advance(10*time.Minute + 30*time.Second)
		if s := h.status(); s.RuntimeStatus != client.StatusRunning || s.Started != 310 || s.Missed+s.Skipped != 0 {
			s.LastRun = nil
			t.Errorf("%s: got %+v", overlap, s)
		}
	}
}

// A schedule with fields of the maximum size, and of characters that JSON encodes in six bytes, continues as new.
func TestSchedule_maximumSize_continuesAsNew(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	s := every5(time.Second, schedule.OverlapQueue, schedule.CatchUpAll)
	s.ID = strings.Repeat("<", schedule.MaxIDBytes)
	s.Orchestration, s.Version = strings.Repeat("&", 256), strings.Repeat(">", 64)
	s.Input = json.RawMessage(`"` + strings.Repeat("<", (schedule.MaxInputBytes-2)/6) + `"`)
	s.Expression, s.From = "rate(1 minute)", h.Now().Add(123456789)
	h.put(s)
	if err := h.Client().Schedules().Pause(t.Context(), s.ID, ""); err != nil {
		t.Fatal(err)
	}
	h.Advance(30 * time.Hour)
	if err := h.Client().Schedules().Resume(t.Context(), s.ID, ""); err != nil {
		t.Fatal(err)
	}
	h.Advance(10 * time.Second)
	got, err := h.Client().Schedules().Get(t.Context(), s.ID)
	if got.Schedule.Input, got.LastRun, got.CurrentRun = nil, nil, nil; err != nil ||
		got.RuntimeStatus != client.StatusRunning {
		t.Errorf("got %+v, error %v", got, err)
	}
}

func TestOutcome_longError_isTruncatedBetweenCharacters(t *testing.T) {
	t.Parallel()
	for n := range 4 {
		text := outcomeText(t, strings.Repeat("x", n)+strings.Repeat("€", 400))
		if strings.ContainsRune(text, '\uFFFD') || len(text) < 490 || len(text) > 500 {
			t.Errorf("got %d bytes with the end %q", len(text), text[len(text)-10:])
		}
	}
}

func outcomeText(t *testing.T, message string) string {
	t.Helper()
	_, text := schedule.OutcomeOf(errors.New(message))
	return text
}

// The times are the first and the last ones that can be encoded.
func TestSchedule_extremeTimes(t *testing.T) {
	t.Parallel()
	for _, from := range []string{
		"0001-01-02T00:00:00Z", "1500-01-01T00:00:00Z", "2400-01-01T00:00:00Z", "9999-12-31T23:59:59-14:00",
		"9999-12-31T23:59:59.9Z",
	} {
		for _, when := range []string{"rate(5 minutes)", "@daily", "@yearly"} {
			h := newHub(t)
			s := every5(time.Second, "", "")
			s.Expression = when
			s.From, _ = time.Parse(time.RFC3339, from)
			if err := h.Client().Schedules().Put(t.Context(), s); err != nil {
				continue // rejected
			}
			h.Advance(time.Hour)
			got := h.status()
			if got.RuntimeStatus != client.StatusRunning && got.RuntimeStatus != client.StatusCompleted ||
				got.Started > 13 {
				t.Errorf("%s from %s: got %+v", when, from, got)
			}
		}
	}
}

// The state names each manual run twice. A thousand of them and an input of the maximum size exceed the input of an
// execution.
func TestRunNow_thousandTimesWithMaximumInput_continuesAsNew(t *testing.T) {
	t.Parallel()
	shortrun.Skip(t)
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "wait", func(ctx *perdure.OrchestrationContext, _ string) (string, error) {
		return "", perdure.Sleep(ctx, time.Hour)
	})
	h := &hub{t: t, Env: perduretest.New(t, r)}
	instanceID := schedule.InstanceID("s")
	h.put(schedule.Schedule{
		ID: "s", Orchestration: "wait", Expression: "@yearly", Input: json.RawMessage(
			`"` + strings.Repeat("x", schedule.MaxInputBytes-2) + `"`,
		),
	})
	h.runs(1)
	if err := h.Client().Pause(t.Context(), instanceID, ""); err != nil {
		t.Fatal(err)
	}
	h.runs(schedule.MaxQueuedRuns)
	if err := h.Client().Resume(t.Context(), instanceID, ""); err != nil {
		t.Fatal(err)
	}
	h.Advance(90 * time.Minute)
	s := h.status()
	if s.RuntimeStatus != client.StatusRunning || s.Started != 2 || s.Missed == 0 || s.Missed > 250 ||
		int(s.Started+s.Missed)+s.Queued != 1+schedule.MaxQueuedRuns {
		t.Errorf("got %s, %d started, %d missed, %d queued", s.RuntimeStatus, s.Started, s.Missed, s.Queued)
	}
}

// runs requests manual runs of a millisecond each.
func (h *hub) runs(n int) {
	h.t.Helper()
	for range n {
		h.Advance(2 * time.Millisecond)
		if _, err := h.Client().Schedules().Trigger(h.t.Context(), "s"); err != nil {
			h.t.Fatal(err)
		}
	}
	h.RunUntilIdle()
}

// A status with texts of the maximum size exceeds the limit of a custom status, because JSON encodes some characters in
// six bytes.
func TestStatus_maximumSize_isTruncated(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	s := every5(time.Second, schedule.OverlapQueue, "")
	s.Expression, s.ID = "@yearly", strings.Repeat("<", schedule.MaxIDBytes)
	s.Orchestration, s.Version, s.Revision = strings.Repeat("&", 256), strings.Repeat(">", 64), strings.Repeat("<", 64)
	h.put(s)
	h.Advance(time.Minute)
	message := strings.Repeat("<", schedule.MaxMessageBytes)
	if err := h.Client().Schedules().Pause(t.Context(), s.ID, message); err != nil {
		t.Fatal(err)
	}
	for i := range schedule.MaxPendingBackfills {
		to := h.Now().Add(-time.Duration(i)*time.Second - 123456789)
		if err := h.Client().Schedules().Backfill(t.Context(), s.ID, to.Add(-400*24*time.Hour), to); err != nil {
			t.Fatal(err)
		}
		h.RunUntilIdle()
	}
	got, err := h.Client().Schedules().Get(t.Context(), s.ID)
	if err != nil || got.RuntimeStatus != client.StatusPaused || len(got.Backfills) != schedule.MaxPendingBackfills ||
		got.Paused == nil || !strings.HasPrefix(got.Paused.Message, "<") {
		t.Errorf("got %s, %d windows, pause %+v, error %v", got.RuntimeStatus, len(got.Backfills), got.Paused, err)
	}
}
