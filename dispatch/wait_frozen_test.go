package dispatch_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
)

// 1. A function freezes while it runs an activity with WaitForCancellation. Its run lease expires.
// 2. The activity is cancelled, another worker sends its end, and the orchestration undoes it.
// 3. The function is thawed. It stops the activity at once and sends no outcome.
func TestWaitForCancellation_functionIsThawedLate_sendsNoOutcome(t *testing.T) {
	t.Parallel()
	for _, thawed := range []time.Duration{31 * time.Second, 45 * time.Second, 5 * time.Minute} {
		var frozen atomic.Bool
		var thaw chan struct{} // belongs to the bubble of each run
		stands := func(ctx context.Context, _ simaws.Call, next func() error) error {
			if ctx.Value(crashingKey{}) != nil && frozen.Load() {
				<-thaw
			}
			return next()
		}
		undoing(t, simhub.Options{Intercept: stands, WorkVisibility: time.Minute}, func(ctx context.Context, s *sagas) {
			thaw = make(chan struct{})
			in := s.startAs("a", "saga", spec{Job: forever})
			s.turn(0)
			var stopped atomic.Pointer[time.Time]
			clock := func() time.Time {
				if at := stopped.Load(); at != nil {
					return *at
				}
				return time.Now()
			}
			w := must(dispatch.NewWorker(s.registry(), s.Provider, &dispatch.WorkerOptions{
				Logger: slog.New(slog.DiscardHandler), Clock: clock,
			}))
			over := make(chan []string, 1)
			records := s.receive("sim://default")
			go func() { over <- w.HandleRecords(context.WithValue(ctx, crashingKey{}, true), records) }()
			time.Sleep(20 * time.Second)
			at := time.Now()
			stopped.Store(&at)
			frozen.Store(true)
			s.cancelIt(in)
			s.meanwhile(thawed, func() {})
			before := len(s.made())
			stopped.Store(nil)
			frozen.Store(false)
			close(thaw)
			thawedAt := time.Now()
			if failed := <-over; len(failed) != 1 || time.Since(thawedAt) > 2*time.Second {
				t.Errorf("thawed after %v: got failed records %v after %v, want 1 within 2s",
					thawed, failed, time.Since(thawedAt))
			}
			if n := s.outcomesSince(before); n > 0 {
				t.Errorf("thawed after %v: got %d outcomes, want none", thawed, n)
			}
			s.serveFor(10 * time.Minute)
			s.wantUndoneOnce(in.InstanceID)
			s.checkRest()
		})
	}
}

// wantUndoneOnce fails the test unless the undo ran once, and the end of the activity is worker_gone.
func (s *sagas) wantUndoneOnce(id string) {
	s.t.Helper()
	now, err := s.Provider.ReadInstance(s.t.Context(), id)
	want := `"requested, ` + string(perdure.OutcomeWorkerLost) + `"`
	if undone := len(s.seen(&s.undone)); err != nil || string(now.CustomStatus) != want || undone != 1 {
		s.t.Errorf("got end %s, %v, and %d undos, want %s and 1", now.CustomStatus, err, undone, want)
	}
}
