package schedule_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/schedule"
)

func (h *hub) pause() {
	h.t.Helper()
	if err := h.Client().Schedules().Pause(h.t.Context(), "s", "for the migration"); err != nil {
		h.t.Fatal(err)
	}
}

func (h *hub) resume() {
	h.t.Helper()
	if err := h.Client().Schedules().Resume(h.t.Context(), "s", ""); err != nil {
		h.t.Fatal(err)
	}
	h.RunUntilIdle()
}

func (h *hub) startManually() {
	h.t.Helper()
	if _, err := h.Client().Schedules().Trigger(h.t.Context(), "s"); err != nil {
		h.t.Fatal(err)
	}
	h.RunUntilIdle()
}

// The schedule is paused at 00:11 and resumed at 00:32, with runs of the given duration. The times from 00:15 to 00:30
// are missed, and the last one is caught up.
func TestRunNow_pausedSchedule(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		overlap          schedule.OverlapPolicy
		takes            time.Duration
		at               string // the minutes of manual runs
		paused, resumed  string // the runs that have started by the end of the pause, and by 00:34
		cancelled        string
		skipped, started int64
	}{
		"no running run": {
			schedule.OverlapSkip, time.Second, "12 13", "00:05 00:10 00:12 00:13", " 00:30", "", 0, 5,
		},
		"after the running run": {
			schedule.OverlapSkip, 4 * time.Minute, "12 13", "00:05 00:10 00:12 00:13", " 00:30", "", 0, 5,
		},
		"queued after the running run": {
			schedule.OverlapQueue, 4 * time.Minute, "12 13", "00:05 00:10 00:12 00:13", " 00:30", "", 0, 5,
		},
		"queued times stay queued": {
			schedule.OverlapQueue, 7 * time.Minute, "12", "00:05 00:12", " 00:10", "", 0, 3,
		},
		"cancels the running run": {
			schedule.OverlapCancel, 4 * time.Minute, "12 13", "00:05 00:10 00:12 00:13", " 00:30", "00:10 00:12", 0, 5,
		},
		"concurrent with other runs": {
			schedule.OverlapAllow, 4 * time.Minute, "12 13", "00:05 00:10 00:12 00:13", " 00:30", "", 0, 5,
		},
		"running at the resume": {
			schedule.OverlapSkip, 4 * time.Minute, "31", "00:05 00:10 00:31", "", "", 0, 3,
		},
		"not cancelled by missed times": {
			schedule.OverlapCancel, 4 * time.Minute, "31", "00:05 00:10 00:31", "", "", 0, 3,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t)
			h.put(every5(c.takes, c.overlap, ""))
			h.Advance(11*time.Minute + time.Second)
			h.pause()
			for at := range strings.FieldsSeq(c.at) {
				h.Advance(clock(t, "00:"+at).Add(2 * time.Second).Sub(h.Now()))
				h.startManually()
			}
			h.Advance(clock(t, "00:32").Sub(h.Now()))
			h.want(c.paused, c.cancelled)
			if s := h.status(); s.RuntimeStatus != client.StatusPaused || s.Paused == nil ||
				s.Paused.Message != "for the migration" || !s.NextDue.IsZero() ||
				s.Paused.At.Format("15:04") != "00:11" {
				t.Errorf("got %+v", s)
			}
			h.resume()
			h.Advance(2 * time.Minute)
			h.want(c.paused+c.resumed, c.cancelled)
			if s := h.status(); s.RuntimeStatus != client.StatusRunning || s.Paused != nil || s.Skipped != c.skipped ||
				s.Started != c.started || s.NextDue.Format("15:04") != "00:35" {
				t.Errorf("got %+v", s)
			}
		})
	}
}

// Times that were missed before a long manual run are caught up after it. Times during the run overlap with it.
func TestRunNow_afterMissedTimes_catchesUpAfterRun(t *testing.T) {
	t.Parallel()
	for overlap, want := range map[schedule.OverlapPolicy]string{
		schedule.OverlapSkip:   "00:05 00:18 00:15 00:40 00:45",
		schedule.OverlapQueue:  "00:05 00:18 00:15 00:20 00:25 00:30 00:35 00:40 00:45",
		schedule.OverlapCancel: "00:05 00:18 00:30 00:35 00:40 00:45",
	} {
		h := newHub(t)
		h.put(every5(time.Second, overlap, ""))
		h.Advance(6 * time.Minute)
		h.put(every5(20*time.Minute, overlap, ""))
		h.pause()
		h.Advance(12 * time.Minute) // 00:10 and 00:15 are missed
		h.startManually()
		h.Advance(time.Minute)
		h.put(every5(time.Second, overlap, ""))
		h.Advance(13 * time.Minute) // 00:20 to 00:30 are due during the run
		h.resume()
		h.Advance(14 * time.Minute)
		h.want(want, map[schedule.OverlapPolicy]string{schedule.OverlapCancel: "00:18"}[overlap])
	}
}

// Repeated puts during a pause do not add runs for missed times.
func TestPut_repeatedWhilePaused_catchesUpOnce(t *testing.T) {
	t.Parallel()
	for catchUp, want := range map[schedule.CatchUpPolicy]string{
		"":                   "00:05 00:30",
		schedule.CatchUpAll:  "00:05 00:10 00:15 00:20 00:25 00:30",
		schedule.CatchUpNone: "00:05",
	} {
		h := newHub(t)
		s := every5(time.Second, "", catchUp)
		h.put(s)
		h.Advance(6 * time.Minute)
		h.pause()
		since := h.status().Paused.At
		for range 5 {
			h.Advance(4*time.Minute + 20*time.Second) // less than a minute after scheduled times
			h.put(s)
		}
		h.pause()
		if p := h.status().Paused; p == nil || !p.At.Equal(since) {
			t.Errorf("start of the pause: got %v, want %v", p, since)
		}
		h.Advance(clock(t, "00:32").Sub(h.Now()))
		h.resume()
		h.Advance(time.Minute)
		h.want(want, "")
	}
}

// Changes and backfills during a pause take effect at its end. A deletion takes effect immediately.
func TestPause_holdsCommandsExceptDelete(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.put(every5(time.Second, "", ""))
	h.Advance(6*time.Minute + 30*time.Second)
	h.pause()
	h.Advance(15 * time.Minute)
	h.put(every5(2*time.Second, "", schedule.CatchUpNone))
	h.backfill("-23:50", "-23:55")
	h.pause() // again
	h.Advance(10 * time.Minute)
	h.want("00:05", "")
	if s := h.status(); s.RuntimeStatus != client.StatusPaused || s.Queued != 1 || len(s.Backfills) != 1 {
		t.Errorf("got %+v", s)
	}
	h.resume()
	h.Advance(time.Minute)
	h.want("00:05 00:20 23:50 23:55", "")
	if err := h.Client().Schedules().Resume(t.Context(), "s", ""); !errors.Is(err, client.ErrNotPaused) {
		t.Errorf("schedule is not paused: got error %v", err)
	}

	h.pause()
	if err := h.Client().Schedules().Delete(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	h.Advance(2 * time.Minute)
	if s := h.status(); s.RuntimeStatus != client.StatusCompleted {
		t.Errorf("got %+v", s)
	}
	if err := h.Client().Schedules().Pause(t.Context(), "s", ""); !errors.Is(err, client.ErrEnded) {
		t.Errorf("ended schedule: got error %v", err)
	}
}

// The next execution keeps the pause and its state. Forty manual runs need more than one execution.
func TestPause_continueAsNew_keepsPause(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.put(every5(6*time.Minute, schedule.OverlapQueue, ""))
	h.Advance(11*time.Minute + 30*time.Second) // the run of 00:10 waits
	h.pause()
	for range 40 {
		h.startManually()
		h.Advance(time.Second)
	}
	h.Advance(10 * time.Hour)
	s := h.status()
	in, err := h.Client().Status(t.Context(), s.InstanceID)
	if err != nil || in.ExecutionNumber < 2 || s.Started != 42 || s.Queued != 0 ||
		s.RuntimeStatus != client.StatusPaused {
		t.Errorf("execution %d: got %+v, error %v", in.ExecutionNumber, s, err)
	}
	h.resume()
	h.Advance(time.Minute)
	if s := h.status(); s.Started != 43 || s.RuntimeStatus != client.StatusRunning {
		t.Errorf("got %+v", s)
	}
}

// A schedule without further times does not end during a pause.
func TestPause_noFurtherTimes_endsAfterResume(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	s := every5(time.Second, "", "")
	s.Until = h.Now().Add(5 * time.Minute)
	h.put(s)
	h.pause()
	h.Advance(time.Hour)
	h.startManually()
	h.Advance(time.Hour)
	h.want("01:00", "")
	h.resume()
	h.Advance(5 * time.Minute)
	h.want("01:00 00:05", "")
	if s := h.status(); s.RuntimeStatus != client.StatusCompleted {
		t.Errorf("got %+v", s)
	}
}

// If an earlier client paused the instance, a manual run waits until the instance is resumed. A resume ends both kinds
// of pause.
func TestPauseInstance_manualRun_waitsForResume(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.put(every5(time.Second, "", ""))
	h.Advance(6 * time.Minute)
	h.pause()
	if err := h.Client().Pause(t.Context(), schedule.InstanceID("s"), ""); err != nil {
		t.Fatal(err)
	}
	h.RunUntilIdle()
	h.startManually()
	h.Advance(time.Minute)
	h.want("00:05", "")
	if err := h.Client().Schedules().Pause(t.Context(), "s", ""); err != nil { // it is already paused
		t.Error(err)
	}
	h.resume()
	h.Advance(time.Minute)
	h.want("00:05 00:06", "")
	if s := h.status(); s.RuntimeStatus != client.StatusRunning {
		t.Errorf("got %+v", s)
	}
}

// A run that an earlier client requested waits for the end of a pause, as it did in that release.
func TestRunNow_clientOfEarlierRelease_waitsForResume(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.put(every5(time.Second, "", ""))
	h.Advance(6 * time.Minute)
	h.pause()
	if err := h.Client().RaiseEvent(
		t.Context(), schedule.InstanceID("s"), schedule.CommandEvent, schedule.Command{RunAt: clock(t, "00:07")},
	); err != nil {
		t.Fatal(err)
	}
	h.Advance(2 * time.Minute)
	h.want("00:05", "")
	h.resume()
	h.Advance(time.Minute)
	h.want("00:05 00:07", "")
}

// After a crash at any call, a manual run starts once, and the schedule stays paused.
func TestPause_crashAtAnyCall_manualRunStartsOnce(t *testing.T) {
	t.Parallel()
	perduretest.CrashAtEveryCall(t, func(t *testing.T, crashes perduretest.Option) *perduretest.Env {
		t.Helper()
		h := newHub(t, crashes)
		h.put(every5(time.Second, "", ""))
		h.Advance(time.Minute)
		h.pause()
		h.startManually()
		h.Advance(21*time.Minute + 30*time.Second)
		runs := map[string]int{}
		h.mu.Lock()
		for _, r := range h.began {
			runs[r]++
		}
		h.mu.Unlock()
		if got, err := client.Collect(
			h.Client().List(t.Context(), client.ListQuery{Orchestration: "report"}),
		); err != nil || len(got) != 1 || len(runs) != 1 {
			t.Errorf("got runs %v, %d instances, error %v", runs, len(got), err)
		}
		h.resume()
		h.Advance(2 * time.Minute)
		if s := h.status(); s.Started < 2 || s.RuntimeStatus != client.StatusRunning {
			t.Errorf("got %+v", s)
		}
		return h.Env
	})
}

// The histories are of a release without updates that pause a schedule. They have manual runs, a pause of the instance,
// a backfill and several executions.
func TestReplay_historiesOfEarlierRelease(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/before-pauses-*.json")
	if err != nil || len(files) != 4 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		doc, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		r := perdure.NewRegistry()
		schedule.Register(r)
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			perduretest.Replay(t, r, doc)
		})
	}
}

// A manual run that cancels the previous one does not drop missed times.
func TestRunNow_cancelsRun_keepsMissedTimes(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.put(every5(time.Minute, schedule.OverlapCancel, schedule.CatchUpAll))
	h.Advance(6*time.Minute + 30*time.Second)
	h.pause()
	h.Advance(10 * time.Minute)
	h.put(
		every5(50*time.Second, schedule.OverlapCancel, schedule.CatchUpAll),
	) // 00:10 and 00:15 are missed and will be caught up
	for range 3 { // the second run waits for the end of the first, and the third replaces it
		h.startManually()
		h.Advance(time.Millisecond)
	}
	h.Advance(time.Minute)
	s := h.status()
	if s.Queued != 2 || s.CurrentRun != nil || s.Started+s.Skipped != 4 || s.Missed != 0 {
		t.Errorf("got %+v", s)
	}
	h.resume()
	h.Advance(2 * time.Minute)
	h.mu.Lock()
	defer h.mu.Unlock()
	if got := strings.Join(h.began, " "); !strings.HasSuffix(got, " 00:10 00:15") {
		t.Errorf("got runs %s", got)
	}
}
