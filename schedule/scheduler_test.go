package schedule_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/schedule"
)

// hub is a hub that records its runs, which take the time in their input.
type hub struct {
	*perduretest.Env

	t  *testing.T
	mu sync.Mutex
	// began and cancelled have the runs in order, by their scheduled minute.
	began, cancelled []string
}

func newHub(t *testing.T, opts ...perduretest.Option) *hub {
	t.Helper()
	h := &hub{t: t}
	r := perdure.NewRegistry()
	note := perdure.DefineActivity[string, bool]("note")
	note.Register(r, func(_ context.Context, what string) (bool, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		kind, run, _ := strings.Cut(what, " ")
		due, ok := schedule.DueTime(run)
		if !ok {
			return false, perdure.NonRetryable(fmt.Errorf("%q is not the ID of a run", run))
		}
		if minute := due.Format("15:04"); kind == "began" {
			h.began = append(h.began, minute)
		} else {
			h.cancelled = append(h.cancelled, minute)
		}
		return true, nil
	})
	perdure.AddOrchestration(r, "report", func(ctx *perdure.OrchestrationContext, takes time.Duration) (string, error) {
		if _, err := note.Call(ctx, "began "+ctx.InstanceID()).Await(ctx); err != nil {
			return "", err
		}
		if err := perdure.Sleep(ctx, takes); err != nil {
			_, gone := note.Call(
				perdure.WithoutCancel(ctx), "cancelled "+ctx.InstanceID(),
			).Await(perdure.WithoutCancel(ctx))
			return "", errors.Join(err, gone)
		}
		if takes < 0 {
			return "", errors.New("there is nothing to report")
		}
		return "reported", nil
	})
	h.Env = perduretest.New(t, r, opts...)
	return h
}

// every5 returns a schedule with a time every five minutes, whose runs take the given duration.
func every5(takes time.Duration, overlap schedule.OverlapPolicy, catchUp schedule.CatchUpPolicy) schedule.Schedule {
	in, _ := json.Marshal(takes)
	return schedule.Schedule{
		ID: "s", Orchestration: "report", Input: in, Expression: "*/5 * * * *", Overlap: overlap, CatchUp: catchUp,
	}
}

func (h *hub) put(s schedule.Schedule) {
	h.t.Helper()
	if err := h.Client().Schedules().Put(h.t.Context(), s); err != nil {
		h.t.Fatal(err)
	}
	h.RunUntilIdle()
}

// status returns the status of the schedule.
func (h *hub) status() client.ScheduleStatus {
	h.t.Helper()
	s, err := h.Client().Schedules().Get(h.t.Context(), "s")
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

// want compares the started and the cancelled runs with texts such as "00:05 00:10".
func (h *hub) want(began, cancelled string) {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if got := strings.Join(h.began, " "); got != began {
		h.t.Errorf("started runs: got %s, want %s", got, began)
	}
	if got := strings.Join(h.cancelled, " "); got != cancelled {
		h.t.Errorf("cancelled runs: got %s, want %s", got, cancelled)
	}
}

// Virtual time starts at midnight.
func TestSchedule_startsRunsAtTheirTimes(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.put(every5(time.Minute, "", ""))
	first := h.status()
	if first.RuntimeStatus != client.StatusRunning || first.NextDue.Format("15:04") != "00:05" ||
		first.Schedule.Expression != "*/5 * * * *" || first.Schedule.Input != nil {
		t.Errorf("got %+v", first)
	}
	h.Advance(5 * time.Minute)
	if s := h.status(); s.CurrentRun == nil || s.CurrentRun.InstanceID != "s@2000-01-01T00:05:00Z" || s.Started != 1 {
		t.Errorf("got %+v", s)
	}
	h.Advance(7 * time.Minute)
	h.want("00:05 00:10", "")
	s := h.status()
	if s.CurrentRun != nil || s.LastRun == nil || s.LastRun.Outcome != schedule.OutcomeCompleted ||
		s.LastRun.EndedAt.Sub(s.LastRun.StartedAt).Round(time.Minute) != time.Minute ||
		s.NextDue.Format("15:04") != "00:15" {
		t.Errorf("got %+v", s)
	}
	run, err := h.Client().Status(t.Context(), s.LastRun.InstanceID)
	if err != nil || run.Status != client.StatusCompleted || run.Parent == nil ||
		run.Parent.InstanceID != schedule.InstanceID("s") {
		t.Errorf("got %+v, error %v", run, err)
	}
}

// A day has many executions with short histories, and no time is lost between two.
func TestSchedule_day_hasShortHistories(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.put(every5(time.Minute, "", ""))
	h.Advance(24 * time.Hour)
	s := h.status()
	if s.Started != 288 && s.Started != 287 || s.Failed != 0 || s.Skipped != 0 || s.Missed != 0 {
		t.Errorf("got %+v", s)
	}
	in, err := h.Client().Status(t.Context(), s.InstanceID)
	if err != nil || in.ExecutionNumber < 14 {
		t.Errorf("got %+v, error %v", in, err)
	}
	events, err := client.Collect(h.Client().History(t.Context(), s.InstanceID))
	if err != nil || len(events) > 400 {
		t.Errorf("got %d events, error %v", len(events), err)
	}
}

func TestOverlap_policies(t *testing.T) {
	t.Parallel()
	for overlap, want := range map[schedule.OverlapPolicy]struct {
		began, cancelled                 string
		started, skipped, missed, queued int
	}{
		"":                    {began: "00:05 00:20", started: 2, skipped: 2},
		schedule.OverlapQueue: {began: "00:05 00:10 00:15", started: 3, queued: 2},
		schedule.OverlapCancel: {
			began: "00:05 00:10 00:15 00:20 00:25 00:30", cancelled: "00:05 00:10 00:15 00:20 00:25", started: 6,
		},
		schedule.OverlapAllow: {began: "00:05 00:10 00:15 00:20 00:25 00:30", started: 6},
	} {
		t.Run(string(overlap), func(t *testing.T) {
			t.Parallel()
			h := newHub(t)
			h.put(every5(12*time.Minute, overlap, ""))
			h.Advance(31 * time.Minute)
			s := h.status()
			h.want(want.began, want.cancelled)
			if int(s.Started) != want.started || int(s.Skipped) != want.skipped || s.Queued != want.queued ||
				s.Missed != 0 {
				t.Errorf("got %+v", s)
			}
		})
	}
}

// The schedule is paused from 00:07 to 00:32, while no run is running.
func TestCatchUp_policies(t *testing.T) {
	t.Parallel()
	for catchUp, want := range map[schedule.CatchUpPolicy]struct {
		began  string
		missed int64
	}{
		"":                   {"00:05 00:30 00:35", 4},
		schedule.CatchUpNone: {"00:05 00:35", 5},
		schedule.CatchUpAll:  {"00:05 00:10 00:15 00:20 00:25 00:30 00:35", 0},
	} {
		t.Run(string(catchUp), func(t *testing.T) {
			t.Parallel()
			h := newHub(t)
			h.put(every5(time.Second, "", catchUp))
			h.Advance(7 * time.Minute)
			if err := h.Client().Schedules().Pause(t.Context(), "s", "for the migration"); err != nil {
				t.Fatal(err)
			}
			h.Advance(25 * time.Minute)
			if s := h.status(); s.RuntimeStatus != client.StatusPaused || s.Started != 1 {
				t.Errorf("got %+v", s)
			}
			if err := h.Client().Schedules().Resume(t.Context(), "s", ""); err != nil {
				t.Fatal(err)
			}
			h.Advance(4 * time.Minute)
			h.want(want.began, "")
			if s := h.status(); s.Missed != want.missed || s.Skipped != 0 {
				t.Errorf("got %+v", s)
			}
		})
	}
}

func TestReplace_duringRun_runContinues(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.put(every5(12*time.Minute, "", ""))
	h.Advance(6 * time.Minute)
	changed := every5(time.Second, "", "")
	changed.Expression = "7,37 * * * *"
	h.put(changed)
	if s := h.status(); s.CurrentRun == nil || s.NextDue.Format("15:04") != "00:07" ||
		s.Schedule.Expression != changed.Expression {
		t.Errorf("got %+v", s)
	}
	h.Advance(32 * time.Minute)
	h.want("00:05 00:37", "")
	if s := h.status(); s.Skipped != 1 || s.NextDue.Format("15:04") != "01:07" {
		t.Errorf("got %+v", s)
	}
}

func TestRunNow_startsRun(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.put(every5(time.Minute, "", ""))
	h.Advance(5*time.Minute + 10*time.Second)
	for range 2 { // both runs wait for the running one
		if _, err := h.Client().Schedules().Trigger(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		h.Advance(time.Second)
	}
	h.Advance(4 * time.Minute)
	h.want("00:05 00:05 00:05", "")
	if s := h.status(); s.Started != 3 || s.Skipped != 0 {
		t.Errorf("got %+v", s)
	}
}

func TestDelete_duringRun_endsAfterRun(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.put(every5(12*time.Minute, schedule.OverlapQueue, ""))
	h.Advance(11 * time.Minute)
	if err := h.Client().Schedules().Delete(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	h.RunUntilIdle()
	if s := h.status(); !s.Deleting || s.RuntimeStatus != client.StatusRunning || !s.NextDue.IsZero() {
		t.Errorf("got %+v", s)
	}
	h.Advance(20 * time.Minute)
	h.want("00:05", "")
	if s := h.status(); s.RuntimeStatus != client.StatusCompleted || s.LastRun.Outcome != schedule.OutcomeCompleted {
		t.Errorf("got %+v", s)
	}

	h.put(every5(time.Second, "", "")) // the ID can be reused
	h.Advance(10 * time.Minute)
	if s := h.status(); s.RuntimeStatus != client.StatusRunning || s.Started != 2 {
		t.Errorf("got %+v", s)
	}
}

// A put immediately after a delete must not be lost because the instance is about to end.
func TestPut_afterDelete_revokesDelete(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.put(every5(time.Second, "", ""))
	ctx := t.Context()
	if err := errors.Join(
		h.Client().Schedules().Delete(ctx, "s"), h.Client().Schedules().Put(ctx, every5(time.Second, "", "")),
	); err != nil {
		t.Fatal(err)
	}
	h.Advance(6 * time.Minute)
	if s := h.status(); s.RuntimeStatus != client.StatusRunning || s.Started != 1 {
		t.Errorf("got %+v", s)
	}
}

func TestSchedule_noFurtherTimes_ends(t *testing.T) {
	t.Parallel()
	for _, overlap := range []schedule.OverlapPolicy{schedule.OverlapSkip, schedule.OverlapAllow} {
		h := newHub(t)
		s := every5(time.Second, overlap, "")
		s.Until = h.Now().Add(10 * time.Minute)
		h.put(s)
		h.Advance(12 * time.Minute)
		h.want("00:05 00:10", "")
		if s := h.status(); s.RuntimeStatus != client.StatusCompleted || s.Started != 2 {
			t.Errorf("%s: got %+v", overlap, s)
		}
	}
}

// A cancellation of the instance also cancels the run.
func TestCancelInstance_cancelsRun(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.put(every5(12*time.Minute, "", ""))
	h.Advance(6 * time.Minute)
	if err := h.Client().Cancel(t.Context(), schedule.InstanceID("s"), "no more"); err != nil {
		t.Fatal(err)
	}
	h.Advance(time.Minute)
	h.want("00:05", "00:05")
	if s := h.status(); s.RuntimeStatus != client.StatusCancelled {
		t.Errorf("got %+v", s)
	}
}

func TestRun_fails_isRecordedAndNextStarts(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.put(every5(-1, "", ""))
	h.Advance(11 * time.Minute)
	h.want("00:05 00:10", "")
	s := h.status()
	if s.Failed != 2 || s.LastRun.Outcome != schedule.OutcomeFailed ||
		!strings.Contains(s.LastRun.Error, "nothing to report") {
		t.Errorf("got %+v", s)
	}
}

// Commands that no client of this release sends are ignored and logged.
func TestCommand_invalid_isIgnoredAndLogged(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.put(every5(time.Second, "", ""))
	for _, order := range []any{"?", schedule.Command{Replace: &schedule.Schedule{ID: "s"}}, schedule.Command{}} {
		if err := h.Client().RaiseEvent(
			t.Context(), schedule.InstanceID("s"), schedule.CommandEvent, order,
		); err != nil {
			t.Fatal(err)
		}
	}
	h.Advance(6 * time.Minute)
	h.want("00:05", "")
}

func TestListSchedules_deletedSchedule_isListedUntilPurged(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	for _, id := range []string{"b", "s", "a"} {
		s := every5(time.Second, "", "")
		s.ID = id
		h.put(s)
	}
	ids := func() (ids string) {
		t.Helper()
		for s, err := range h.Client().Schedules().List(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			ids += s.Schedule.ID
		}
		return ids
	}
	if got := ids(); got != "abs" {
		t.Errorf("got list %s", got)
	}
	if err := h.Client().Schedules().Delete(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	h.Advance(2 * time.Minute)
	if got := ids(); got != "abs" {
		t.Errorf("list with status Completed: got %s", got)
	}
	if err := h.Client().Schedules().Delete(t.Context(), "b"); err != nil { // it has ended, so it is purged
		t.Fatal(err)
	}
	h.Advance(time.Hour)
	if got := ids(); got != "as" {
		t.Errorf("list after a purge: got %s", got)
	}
}

// After a crash at any call of AWS, each time has one run.
func TestSchedule_crashAtAnyCall_startsEachTimeOnce(t *testing.T) {
	t.Parallel()
	perduretest.CrashAtEveryCall(t, func(t *testing.T, crashes perduretest.Option) *perduretest.Env {
		t.Helper()
		h := newHub(t, crashes)
		twice := every5(time.Second, schedule.OverlapQueue, schedule.CatchUpAll)
		twice.Until = h.Now().Add(10 * time.Minute)
		h.put(twice)
		h.Advance(time.Hour) // messages of killed functions are redelivered after minutes
		s := h.status()
		if s.RuntimeStatus != client.StatusCompleted || s.Started != 2 || s.Missed+s.Skipped != 0 || s.LastRun == nil ||
			s.LastRun.Outcome != schedule.OutcomeCompleted {
			t.Errorf("got %+v", s)
		}
		return h.Env
	})
}
