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

// A function is frozen in the midst of an activity that is waited for, and thawed when its run has gone to another delivery, has been cancelled, told
// and undone: its activity is stopped at once, and nothing of what it comes to is told.
func TestAFunctionThatIsThawedAfterItsRunIsOverTellsNothing(t *testing.T) {
	t.Parallel()
	for _, thawed := range []time.Duration{31 * time.Second, 45 * time.Second, 5 * time.Minute} {
		var frozen atomic.Bool
		var thaw chan struct{} // of the bubble, for which it is made
		stands := func(ctx context.Context, _ simaws.Call, next func() error) error {
			if ctx.Value(deathly{}) != nil && frozen.Load() {
				<-thaw
			}
			return next()
		}
		undoing(t, simhub.Options{Intercept: stands, WorkVisibility: time.Minute}, func(ctx context.Context, s *sagas) {
			thaw = make(chan struct{})
			in := s.startAs("a", "saga", deed{Job: forever})
			s.turn(0)
			var stopped atomic.Pointer[time.Time]
			clock := func() time.Time {
				if at := stopped.Load(); at != nil {
					return *at
				}
				return time.Now()
			}
			w := must(dispatch.NewWorker(s.registry(), s.Provider, &dispatch.WorkerOptions{Logger: slog.New(slog.DiscardHandler), Clock: clock}))
			over := make(chan []string, 1)
			records := s.receive("sim://default")
			go func() { over <- w.HandleRecords(context.WithValue(ctx, deathly{}, true), records) }()
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
				t.Errorf("thawed after %v: failed %v, after %v", thawed, failed, time.Since(thawedAt))
			}
			if n := s.toldSince(before); n > 0 {
				t.Errorf("thawed after %v: %d outcomes are told", thawed, n)
			}
			s.serveFor(10 * time.Minute)
			s.wantFrozenUndone(in.InstanceID)
			s.checkRest()
		})
	}
}

// wantFrozenUndone fails unless the deed was undone once, and is said to have lost its worker.
func (s *sagas) wantFrozenUndone(id string) {
	s.t.Helper()
	now, err := s.Provider.ReadInstance(s.t.Context(), id)
	if want := `"requested, ` + string(perdure.OutcomeWorkerLost) + `"`; err != nil || string(now.CustomStatus) != want || len(s.seen(&s.undone)) != 1 {
		s.t.Errorf("the deed ended %s, %v, want %s; undone %d times", now.CustomStatus, err, want, len(s.seen(&s.undone)))
	}
}
