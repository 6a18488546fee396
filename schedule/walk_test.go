package schedule_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/schedule"
)

// After any sequence of commands, each time has started, waits, or is counted, and the schedule continues.
func TestSchedule_randomCommands_eachTimeIsCounted(t *testing.T) {
	t.Parallel()
	for seed := range shortrun.Few[uint64](6, 8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			var opts []perduretest.Option
			if seed%2 == 0 {
				opts = append(opts, perduretest.WithCache())
			}
			walk(t, newHub(t, opts...), rand.New(rand.NewPCG(seed, 15)))
		})
	}
}

func walk(t *testing.T, h *hub, r *rand.Rand) {
	t.Helper()
	begin := h.Now()
	manual, paused := int64(0), false
	put := func() {
		takes := []time.Duration{-1, time.Second, 7 * time.Minute, 23 * time.Minute}[r.IntN(4)]
		overlap := []schedule.OverlapPolicy{
			schedule.OverlapSkip, schedule.OverlapQueue, schedule.OverlapCancel, schedule.OverlapAllow,
		}[r.IntN(4)]
		h.put(
			every5(
				takes, overlap, []schedule.CatchUpPolicy{
					schedule.CatchUpNone, schedule.CatchUpLast, schedule.CatchUpAll,
				}[r.IntN(3)],
			),
		)
	}
	put()
	for range 40 {
		var err error
		switch r.IntN(6) {
		case 0:
			put()
		case 1:
			manual++
			_, err = h.Client().Schedules().Trigger(t.Context(), "s")
		case 2:
			paused = true
			err = h.Client().Schedules().Pause(t.Context(), "s", "")
		case 3:
			if paused {
				paused, err = false, h.Client().Schedules().Resume(t.Context(), "s", "")
			}
		default:
		}
		if err != nil {
			t.Fatal(err)
		}
		h.Advance(time.Duration(1+r.IntN(1500)) * time.Second)
	}

	if paused {
		if err := h.Client().Schedules().Resume(t.Context(), "s", ""); err != nil {
			t.Fatal(err)
		}
	}
	h.put(every5(time.Second, schedule.OverlapQueue, schedule.CatchUpAll))
	h.Advance(10 * time.Hour) // waiting runs start, and running ones end
	h.Advance(6*time.Minute - h.Now().Sub(begin)%(5*time.Minute))
	s := h.status()
	due := int64(h.Now().Sub(begin) / (5 * time.Minute))
	if s.RuntimeStatus != client.StatusRunning || s.Queued != 0 || s.CurrentRun != nil ||
		s.Started+s.Skipped+s.Missed != due+manual {
		t.Errorf(
			"%d scheduled, %d manual: got %s, %d started, %d skipped, %d missed, %d queued",
			due, manual, s.RuntimeStatus,
			s.Started, s.Skipped, s.Missed, s.Queued,
		)
	}
}

// Two callers repeatedly put a schedule that has ended.
func TestPut_concurrentAfterEnd(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.put(every5(time.Second, "", ""))
	for range 5 {
		if err := h.Client().Cancel(t.Context(), schedule.InstanceID("s"), ""); err != nil {
			t.Fatal(err)
		}
		h.Advance(time.Second)
		var both sync.WaitGroup
		errs := make([]error, 2)
		for i := range errs {
			both.Go(func() { errs[i] = h.Client().Schedules().Put(t.Context(), every5(time.Second, "", "")) })
		}
		both.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Error(err)
		}
		h.Advance(6 * time.Minute)
		if s := h.status(); s.RuntimeStatus != client.StatusRunning || s.Started+s.Skipped == 0 {
			t.Errorf("got %+v", s)
		}
	}
}

// The characters have a meaning in other identifiers.
func TestSchedule_specialCharactersInID(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	for _, id := range []string{
		"a@b", "a/b", "a#b", "schedule:x", "x@2000-01-01T00:05:00Z", "größe 😀", "%2f?&=", strings.Repeat("ü", 100),
	} {
		s := every5(time.Second, "", "")
		s.ID = id
		h.put(s)
		h.Advance(6 * time.Minute)
		got, err := h.Client().Schedules().Get(t.Context(), id)
		if err != nil || got.Schedule.ID != id || got.LastRun == nil ||
			got.LastRun.Outcome != schedule.OutcomeCompleted {
			t.Fatalf("%q: got %+v, error %v", id, got, err)
		}
		if due, ok := schedule.DueTime(got.LastRun.InstanceID); !ok || !due.Equal(got.LastRun.Due) ||
			schedule.RunID(id, due) != got.LastRun.InstanceID {
			t.Errorf("%q: got run %q, due %v", id, got.LastRun.InstanceID, due)
		}
		if of, ok := schedule.ParseInstanceID(got.InstanceID); !ok || of != id {
			t.Errorf("%q: got %q", got.InstanceID, of)
		}
	}
	n := 0
	for p := (client.Paging{Limit: 3}); ; {
		page, err := h.Client().Schedules().ListPage(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		n += len(page.Items)
		if p.Cursor = page.NextCursor; p.Cursor == "" {
			break
		}
	}
	if n != 8 {
		t.Errorf("got %d schedules, want 8", n)
	}
}
