package timers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/internal/logevent"
)

// duty is one of the things that the watch sees to, at each look. Duties run side by side, so that none keeps another from its turn, until
// the time of the look is over: then ctx ends. What a duty has to see to may be more than a look has time for. So it notes how far it has come
// as it goes, and the next look goes on there; and since two looks may happen at once, whatever it does is harmless when repeated.
type duty struct {
	name string // for the log
	see  func(ctx context.Context, t *tally)
}

// duties are all there are.
func (k *Timekeeper) duties() []duty {
	return []duty{
		{"pending", k.wakePending},
		{"blocked", k.wakeBlocked},
		{"deletions", k.finishDeletions},
		{"dead letters", k.pickUp},
		{"retention", k.retire},
		{"jobs", jobRunner{k}.workOnJobs},
		{"workers", k.missWorkers},
		{"attention", k.countAttention},
	}
}

// watchTime is how long a look takes at the most where nothing else bounds it, as in a process that polls: less than the time to the next.
const watchTime = time.Minute

// Watch implements dispatch.Renewer.Sweep.
func (k *Timekeeper) Watch(ctx context.Context) (woken int, err error) {
	limited, stop := context.WithTimeout(ctx, k.timeToWatch(ctx))
	defer stop()
	before := k.looks.begin(k.options.Clock())
	duties := k.duties()
	tallies := make([]tally, len(duties))
	var running sync.WaitGroup
	for i, d := range duties {
		running.Go(func() {
			d.see(limited, &tallies[i])
			tallies[i].cut = tallies[i].cut || limited.Err() != nil
		})
	}
	running.Wait()
	k.meter.LagSince(intake.MetricWatchLag, before)
	k.meter.Flush(ctx)
	var errs []error
	for i, d := range duties {
		woken += tallies[i].woken
		if err := k.conclude(ctx, d.name, &tallies[i]); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return woken, fmt.Errorf("dispatch: sweep: %w", errors.Join(errs...))
	}
	return woken, nil
}

// looks remembers when the last look of the process began.
type looks struct {
	mu   sync.Mutex
	last time.Time
}

// begin notes a look, and returns when the one before it began; zero where there is none.
func (l *looks) begin(now time.Time) (before time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, l.last = l.last, now
	return before
}

// timeToWatch is what a look has of the time that ctx leaves: not the reserve, in which duties that are cut short come to their ends.
func (k *Timekeeper) timeToWatch(ctx context.Context) time.Duration {
	end, bounded := ctx.Deadline()
	if !bounded {
		return watchTime
	}
	left := end.Sub(k.options.Clock())
	return min(left-min(intake.Reserve, left/4), watchTime)
}

// conclude logs what a duty did, if it did anything, and returns what failed.
func (k *Timekeeper) conclude(ctx context.Context, name string, t *tally) error {
	if t.woken+t.done > 0 {
		k.options.Logger.InfoContext(ctx, "sweep made progress", "event", logevent.SweepProgressed, "duty", name,
			"woken", t.woken, "done", t.done, "failed", t.failed, "cutShort", t.cut)
	}
	switch {
	case t.failed > len(t.errs):
		return fmt.Errorf("%s: %d failed, first errors: %w", name, t.failed, errors.Join(t.errs...))
	case t.failed > 0:
		return fmt.Errorf("%s: %w", name, errors.Join(t.errs...))
	case t.cut && t.woken+t.done == 0:
		return fmt.Errorf("%s: %w", name, errNothingDone)
	}
	return nil
}

// errNothingDone: of a duty that gets nowhere the next look cannot go on.
var errNothingDone = errors.New("time limit expired before any progress")

// errorsKept bounds the errors of a duty that a look returns. When a service is away there is one for each instance.
const errorsKept = 10

// tally is what came of a duty. It is safe for concurrent use.
type tally struct {
	mu     sync.Mutex
	woken  int // instances
	done   int // whatever else the duty deals with
	failed int
	errs   []error // the first of those that failed
	cut    bool    // the time was over before the duty was
}

// note counts one thing as done, or as failed with err. That the time of the look was over is no failure.
func (t *tally) note(ctx context.Context, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err == nil:
		t.done++
	case errors.Is(err, errors.ErrUnsupported): // the hub lacks what the duty is for
	case ctx.Err() != nil:
		t.cut = true
	default:
		if t.failed++; len(t.errs) < errorsKept {
			t.errs = append(t.errs, err)
		}
	}
}

// woke counts instances that were sent a message.
func (t *tally) woke(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.woken += n
}

// sideBySide does something with each of some things, so many at once, until ctx ends.
func sideBySide[T any](ctx context.Context, things []T, most int, do func(T)) {
	var running sync.WaitGroup
	places := make(chan struct{}, most)
	for _, thing := range things {
		places <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		running.Go(func() {
			do(thing)
			<-places
		})
	}
	running.Wait()
}
