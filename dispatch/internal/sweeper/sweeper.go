// Package sweeper repairs a hub periodically. It wakes instances that wait, continues deletions and bulk jobs, applies
// retention, and recovers dead letters. It also reports instances and queues that need attention.
package sweeper

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/internal/logevent"
)

// Sweeper implements dispatch.Renewer.Sweep. It is safe for concurrent use.
type Sweeper struct {
	*intake.Base

	hubName string
	missing missingWorkers
	meter   *intake.Meter
	// last is the start of the last sweep of the process.
	last atomic.Pointer[time.Time]
}

// New returns a Sweeper for a hub. It makes no calls.
func New(b *intake.Base, hubName string, m intake.Metrics) *Sweeper {
	return &Sweeper{Base: b, hubName: hubName, meter: intake.NewMeter(m, hubName, "", b)}
}

// duty is one kind of repair that each sweep performs. If a sweep ends before the duty is complete, the next sweep
// continues from the stored progress. Two sweeps may run at the same time, so the steps of a duty are idempotent.
type duty struct {
	name string // for the log
	run  func(ctx context.Context, r *result)
}

// duties returns all duties of a sweep. They run concurrently, so that none delays another, until ctx ends.
func (s *Sweeper) duties() []duty {
	return []duty{
		{"pending", s.wakePending},
		{"blocked", s.wakeBlocked},
		{"deletions", s.continueDeletions},
		{"dead letters", s.recoverDeadLetters},
		{"retention", s.applyRetention},
		{"jobs", jobRunner{s}.runJobs},
		{"workers", s.reportMissingWorkers},
		{"attention", s.countAttention},
	}
}

// maxSweep is the maximum duration of a sweep, which also applies if ctx has no deadline, as in a polling process. It
// is shorter than the interval of sweeps.
const maxSweep = time.Minute

// Sweep implements dispatch.Renewer.Sweep.
func (s *Sweeper) Sweep(ctx context.Context) (woken int, err error) {
	limited, stop := context.WithTimeout(ctx, s.timeLimit(ctx))
	defer stop()
	now, previous := s.Clock(), time.Time{}
	if last := s.last.Swap(&now); last != nil {
		previous = *last
	}
	duties := s.duties()
	results := make([]result, len(duties))
	var running sync.WaitGroup
	for i, d := range duties {
		running.Go(func() {
			d.run(limited, &results[i])
			results[i].cutShort = results[i].cutShort || limited.Err() != nil
		})
	}
	running.Wait()
	s.meter.LagSince(intake.MetricWatchLag, previous)
	s.meter.Flush(ctx)
	var errs []error
	for i, d := range duties {
		woken += results[i].woken
		if err := s.conclude(ctx, d.name, &results[i]); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return woken, fmt.Errorf("dispatch: sweep: %w", errors.Join(errs...))
	}
	return woken, nil
}

// timeLimit returns the time for the duties of a sweep. It leaves a reserve before the deadline of ctx, in which the
// duties that are cut short return.
func (s *Sweeper) timeLimit(ctx context.Context) time.Duration {
	end, bounded := ctx.Deadline()
	if !bounded {
		return maxSweep
	}
	left := end.Sub(s.Clock())
	return min(left-min(intake.Reserve, left/4), maxSweep)
}

// conclude logs the progress of a duty, if it made any, and returns its errors.
func (s *Sweeper) conclude(ctx context.Context, name string, r *result) error {
	if r.woken+r.done > 0 {
		s.Logger.InfoContext(ctx, "sweep made progress", "event", logevent.SweepProgressed, "duty", name,
			"woken", r.woken, "done", r.done, "failed", r.failed, "cutShort", r.cutShort)
	}
	switch {
	case r.failed > len(r.errs):
		return fmt.Errorf("%s: %d failed, first errors: %w", name, r.failed, errors.Join(r.errs...))
	case r.failed > 0:
		return fmt.Errorf("%s: %w", name, errors.Join(r.errs...))
	case r.cutShort && r.woken+r.done == 0:
		return fmt.Errorf("%s: %w", name, errNoProgress)
	}
	return nil
}

// errNoProgress is the error of a duty that was cut short before it did anything. The next sweep would not make
// progress either.
var errNoProgress = errors.New("time limit expired before any progress")
