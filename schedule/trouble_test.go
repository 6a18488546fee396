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

// The twentieth run is the last of its execution: one that is deleted meanwhile ends all the same.
func TestADeleteIsNotForgottenByTheNextExecution(t *testing.T) {
	t.Parallel()
	for runs := 18; runs <= 22; runs++ {
		h := newHub(t)
		h.put(every5(2*time.Minute, "", ""))
		h.Advance(time.Duration(runs)*5*time.Minute + time.Minute)
		if err := h.Client().DeleteSchedule(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		h.Advance(time.Hour)
		if s := h.status(); s.RuntimeStatus != client.StatusCompleted || int(s.Started) != runs {
			t.Errorf("after %d runs: %s, %d started", runs, s.RuntimeStatus, s.Started)
		}
	}
}

// What runs, runs on, and others start beside it.
func TestAScheduleThatComesToAllowDoesNotWait(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.put(every5(24*time.Hour, "", ""))
	h.Advance(6 * time.Minute)
	h.put(every5(time.Second, schedule.OverlapAllow, ""))
	h.Advance(15 * time.Minute)
	h.want("00:05 00:10 00:15 00:20", "")
	if s := h.status(); s.Started != 4 || s.Skipped != 0 || s.CurrentRun == nil {
		t.Errorf("%+v", s)
	}
}

// Puts that change nothing, of each deployment or of each process that starts.
func TestManyPutsDoNotMakeAHistoryLong(t *testing.T) {
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
		t.Errorf("%d events, %v", len(events), err)
	}
	if s := h.status(); s.RuntimeStatus != client.StatusRunning {
		t.Errorf("%+v", s)
	}
}

func TestAPutThatChangesNothingCancelsNoRun(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	s := every5(time.Minute, schedule.OverlapCancel, schedule.CatchUpAll)
	h.put(s)
	h.Advance(7 * time.Minute)
	if err := h.Client().PauseSchedule(t.Context(), "s", ""); err != nil {
		t.Fatal(err)
	}
	h.Advance(14 * time.Minute)
	if err := h.Client().ResumeSchedule(t.Context(), "s", ""); err != nil {
		t.Fatal(err)
	}
	h.RunUntilIdle()
	h.put(s)
	h.Advance(3*time.Minute + 30*time.Second)
	h.want("00:05 00:10 00:15 00:20", "")
}

// The last of its times is over, and it is put again before anybody has seen that.
func TestAPutThatMeetsTheEndIsNotLost(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	s := every5(time.Second, "", "")
	s.Until = h.Now().Add(5 * time.Minute)
	h.put(s)
	h.Advance(5*time.Minute + 3*time.Second)
	if got := h.status(); got.LastRun == nil {
		t.Fatalf("%+v", got)
	}
	s.Until = time.Time{}
	h.put(s)
	h.Advance(5 * time.Minute)
	if s := h.status(); s.Started != 2 || s.RuntimeStatus != client.StatusRunning {
		t.Errorf("%+v", s)
	}
}

// Missed by night: more than one execution starts.
func TestWhatIsMissedIsStartedInParts(t *testing.T) {
	t.Parallel()
	for _, overlap := range []schedule.OverlapPolicy{schedule.OverlapAllow, schedule.OverlapQueue} {
		h := newHub(t)
		s := every5(0, overlap, schedule.CatchUpAll)
		s.Expression = "* * * * *"
		h.put(s)
		if err := h.Client().PauseSchedule(t.Context(), "s", ""); err != nil {
			t.Fatal(err)
		}
		h.Advance(5 * time.Hour)
		if err := h.Client().ResumeSchedule(t.Context(), "s", ""); err != nil {
			t.Fatal(err)
		}
		h.Advance(10*time.Minute + 30*time.Second)
		if s := h.status(); s.RuntimeStatus != client.StatusRunning || s.Started != 310 || s.Missed+s.Skipped != 0 {
			s.LastRun = nil
			t.Errorf("%s: %+v", overlap, s)
		}
	}
}

// The longest of everything, and characters that JSON writes in six bytes: it goes on from one execution to the next.
func TestTheLongestScheduleGoesOn(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	s := every5(time.Second, schedule.OverlapQueue, schedule.CatchUpAll)
	s.ID = strings.Repeat("<", schedule.MaxIDBytes)
	s.Orchestration, s.Version = strings.Repeat("&", 256), strings.Repeat(">", 64)
	s.Input = json.RawMessage(`"` + strings.Repeat("<", (schedule.MaxInputBytes-2)/6) + `"`)
	s.Expression, s.From = "rate(1 minute)", h.Now().Add(123456789)
	h.put(s)
	if err := h.Client().PauseSchedule(t.Context(), s.ID, ""); err != nil {
		t.Fatal(err)
	}
	h.Advance(30 * time.Hour)
	if err := h.Client().ResumeSchedule(t.Context(), s.ID, ""); err != nil {
		t.Fatal(err)
	}
	h.Advance(10 * time.Second)
	got, err := h.Client().Schedule(t.Context(), s.ID)
	if got.Schedule.Input, got.LastRun, got.CurrentRun = nil, nil, nil; err != nil || got.RuntimeStatus != client.StatusRunning {
		t.Errorf("%+v, %v", got, err)
	}
}

// Texts are cut between characters.
func TestALongErrorIsCutBetweenCharacters(t *testing.T) {
	t.Parallel()
	for n := range 4 {
		text := outcomeText(t, strings.Repeat("x", n)+strings.Repeat("€", 400))
		if strings.ContainsRune(text, '\uFFFD') || len(text) < 490 || len(text) > 500 {
			t.Errorf("%d bytes: …%q", len(text), text[len(text)-10:])
		}
	}
}

func outcomeText(t *testing.T, message string) string {
	t.Helper()
	_, text := schedule.OutcomeOf(errors.New(message))
	return text
}

// Times at the ends of what can be written.
func TestTimesAtTheEndOfAllTimes(t *testing.T) {
	t.Parallel()
	for _, from := range []string{"0001-01-02T00:00:00Z", "1500-01-01T00:00:00Z", "2400-01-01T00:00:00Z", "9999-12-31T23:59:59-14:00", "9999-12-31T23:59:59.9Z"} {
		for _, when := range []string{"rate(5 minutes)", "@daily", "@yearly"} {
			h := newHub(t)
			s := every5(time.Second, "", "")
			s.Expression = when
			s.From, _ = time.Parse(time.RFC3339, from)
			if err := h.Client().PutSchedule(t.Context(), s); err != nil {
				continue // refused
			}
			h.Advance(time.Hour)
			got := h.status()
			if got.RuntimeStatus != client.StatusRunning && got.RuntimeStatus != client.StatusCompleted || got.Started > 13 {
				t.Errorf("%s from %s: %+v", when, from, got)
			}
		}
	}
}

// The queue names those by hand twice: a thousand of them, and the longest input, are more than an execution can hand
// to the next.
func TestAThousandRunsByHandBesideTheLongestInputGoOn(t *testing.T) {
	t.Parallel()
	shortrun.Skip(t)
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "wait", func(ctx *perdure.OrchestrationContext, _ string) (string, error) {
		return "", perdure.Sleep(ctx, time.Hour)
	})
	h := &hub{t: t, Env: perduretest.New(t, r)}
	instanceID := schedule.InstanceID("s")
	h.put(schedule.Schedule{ID: "s", Orchestration: "wait", Expression: "@yearly", Input: json.RawMessage(`"` + strings.Repeat("x", schedule.MaxInputBytes-2) + `"`)})
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
	if s.RuntimeStatus != client.StatusRunning || s.Started != 2 || s.Missed == 0 || s.Missed > 250 || int(s.Started+s.Missed)+s.Queued != 1+schedule.MaxQueuedRuns {
		t.Errorf("%s, %d started, %d missed, %d wait", s.RuntimeStatus, s.Started, s.Missed, s.Queued)
	}
}

// runs asks for runs by hand, of a millisecond each.
func (h *hub) runs(n int) {
	h.t.Helper()
	for range n {
		h.Advance(2 * time.Millisecond)
		if _, err := h.Client().TriggerSchedule(h.t.Context(), "s"); err != nil {
			h.t.Fatal(err)
		}
	}
	h.RunUntilIdle()
}

// All that a status shows at its longest is more than a custom status may have, where JSON takes six bytes for a
// character.
func TestTheLongestStatusIsShown(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	s := every5(time.Second, schedule.OverlapQueue, "")
	s.Expression, s.ID = "@yearly", strings.Repeat("<", schedule.MaxIDBytes)
	s.Orchestration, s.Version, s.Revision = strings.Repeat("&", 256), strings.Repeat(">", 64), strings.Repeat("<", 64)
	h.put(s)
	h.Advance(time.Minute)
	if err := h.Client().PauseSchedule(t.Context(), s.ID, strings.Repeat("<", schedule.MaxMessageBytes)); err != nil {
		t.Fatal(err)
	}
	for i := range schedule.MaxPendingBackfills {
		to := h.Now().Add(-time.Duration(i)*time.Second - 123456789)
		if err := h.Client().BackfillSchedule(t.Context(), s.ID, to.Add(-400*24*time.Hour), to); err != nil {
			t.Fatal(err)
		}
		h.RunUntilIdle()
	}
	got, err := h.Client().Schedule(t.Context(), s.ID)
	if err != nil || got.RuntimeStatus != client.StatusPaused || len(got.Backfills) != schedule.MaxPendingBackfills || got.Paused == nil || !strings.HasPrefix(got.Paused.Message, "<") {
		t.Errorf("%s, %d windows, %+v, %v", got.RuntimeStatus, len(got.Backfills), got.Paused, err)
	}
}
