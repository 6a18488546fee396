package schedule_test

import (
	"testing"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/schedule"
)

// pauseInstance pauses the instance of the schedule.
func (h *hub) pauseInstance() {
	h.t.Helper()
	if err := h.Client().Pause(h.t.Context(), schedule.InstanceID("s"), "for the incident"); err != nil {
		h.t.Fatal(err)
	}
	h.RunUntilIdle()
}

func TestPauseSchedule_whileInstanceIsPaused_pausesAfterItsResume(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.put(every5(time.Second, "", ""))
	h.Advance(6 * time.Minute)
	h.pauseInstance()
	h.pause()
	h.RunUntilIdle()
	if err := h.Client().Resume(t.Context(), schedule.InstanceID("s"), ""); err != nil {
		t.Fatal(err)
	}
	h.Advance(11 * time.Minute) // 00:10 and 00:15 are missed
	h.want("00:05", "")
	s := h.status()
	if s.RuntimeStatus != client.StatusPaused || s.Paused == nil || s.Paused.Message != "for the migration" {
		t.Errorf("got %+v", s)
	}
	h.resume()
	h.Advance(time.Minute)
	h.want("00:05 00:15", "")
}

func TestPauseSchedule_whileBothArePaused_replacesMessage(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.put(every5(time.Second, "", ""))
	h.pause()
	h.pauseInstance()
	if err := h.Client().Schedules().Pause(t.Context(), "s", "longer"); err != nil {
		t.Fatal(err)
	}
	h.RunUntilIdle()
	if err := h.Client().Resume(t.Context(), schedule.InstanceID("s"), ""); err != nil {
		t.Fatal(err)
	}
	h.RunUntilIdle()
	if s := h.status(); s.Paused == nil || s.Paused.Message != "longer" {
		t.Errorf("got %+v", s)
	}
}

func TestResumeSchedule_afterPausesWhileInstanceWasPaused_leavesNoPause(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.put(every5(time.Second, "", ""))
	h.Advance(6 * time.Minute)
	h.pauseInstance()
	h.pause()
	h.RunUntilIdle()
	h.resume()
	if s := h.status(); s.RuntimeStatus != client.StatusRunning || s.Paused != nil {
		t.Errorf("got %+v", s)
	}
	h.Advance(5 * time.Minute)
	h.want("00:05 00:10", "")
}
