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

// repair is one task of each sweep. If a sweep ends before the repair is complete, the next sweep
// continues from the stored progress. Two sweeps may run at the same time, so the steps of a repair are idempotent.
type repair struct {
	name string // for the log
	run  func(ctx context.Context, r *result)
}

// repairs returns all repairs of a sweep. They run concurrently, so that none delays another, until ctx ends.
func (s *Sweeper) repairs() []repair {
	return []repair{
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
	repairs := s.repairs()
	results := make([]result, len(repairs))
	var running sync.WaitGroup
	for i, d := range repairs {
		running.Go(func() {
			d.run(limited, &results[i])
			results[i].cutShort = results[i].cutShort || limited.Err() != nil
		})
	}
	running.Wait()
	s.meter.LagSince(intake.MetricWatchLag, previous)
	s.meter.Flush(ctx)
	var errs []error
	for i, d := range repairs {
		woken += results[i].woken
		if err := s.logResult(ctx, d.name, &results[i]); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return woken, fmt.Errorf("dispatch: sweep: %w", errors.Join(errs...))
	}
	return woken, nil
}

// timeLimit returns the time for the repairs of a sweep. It leaves a reserve before the deadline of ctx, in which the
// repairs that are cut short return.
func (s *Sweeper) timeLimit(ctx context.Context) time.Duration {
	end, bounded := ctx.Deadline()
	if !bounded {
		return maxSweep
	}
	left := end.Sub(s.Clock())
	return min(left-min(intake.Reserve, left/4), maxSweep)
}

// logResult logs the progress of a repair, if it made any, and returns its errors.
func (s *Sweeper) logResult(ctx context.Context, name string, r *result) error {
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

// errNoProgress is the error of a repair that was cut short before it did anything. The next sweep would not make
// progress either.
var errNoProgress = errors.New("time limit expired before any progress")
