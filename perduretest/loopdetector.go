package perduretest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/history"
)

// A wait for an instance that never ends must fail:
//
//   - An instance without progress repeats attempts without a result, or continues as new with the same input. The wait
//     ends after the hang timeout of the Env and a minimum number of moves of the clock. Because of that number, a slow
//     machine does not end the wait.
//   - An instance that continues to record events, such as a timer each hour, may be correct. The wait ends after 100
//     years of virtual time, or after half of the remaining timeout of go test, so that the next tests run.
//
// See docs/decisions/0012-test-kit.md.

const (
	// minMoves is the minimum number of moves of the clock without progress before a wait ends.
	minMoves = 1000
	// maxVirtual is the maximum virtual time of a wait.
	maxVirtual = 100 * 365 * 24 * time.Hour
)

// loopDetector checks a wait for progress.
type loopDetector struct {
	env     *Env
	began   time.Time     // in real time
	virtual int64         // start in virtual time, in nanoseconds since 1970
	most    time.Duration // limit in real time, or 0

	from      map[string]instanceProgress // progress at the first check
	before    map[string]instanceProgress // progress at the last check
	ran       []attempt                   // running activities at the last check
	checkedAt time.Time
	since     time.Time // time of the last progress
	moves     int       // moves of the clock since then
}

// attempt is one run of the code of an activity.
type attempt struct {
	instanceID string
	activityID int64
	at         time.Duration
}

func newLoopDetector(e *Env) *loopDetector {
	now := time.Now()
	return &loopDetector{
		env: e, began: now, virtual: e.clock.reached.Load(), most: e.watchdog.share(), checkedAt: now, since: now,
	}
}

// share returns the time limit of a call, which is half of the remaining timeout of go test. It returns 0 if go test
// has no timeout.
func (w *watchdog) share() time.Duration {
	end, some := w.env.t.Deadline()
	if !some {
		return 0
	}
	return max(time.Until(end)/2, time.Millisecond)
}

// diagnose returns the reason why the wait will not end, or an empty string. Call it after each move of the clock.
func (v *loopDetector) diagnose(ctx context.Context) string {
	v.moves++
	if years := time.Duration(v.env.clock.reached.Load() - v.virtual); years > maxVirtual {
		return "is still active after " + v.passed()
	}
	now := time.Now()
	if v.most > 0 && now.Sub(v.began) > v.most {
		return fmt.Sprintf("is still active after %s, half of the remaining -timeout of go test", v.passed())
	}
	if now.Sub(v.checkedAt) < v.env.watchdog.hangTimeout/checks {
		return ""
	}
	v.checkedAt = now
	if v.hasProgress(ctx) {
		v.since, v.moves = now, 0
	}
	if now.Sub(v.since) >= v.env.watchdog.hangTimeout && v.moves >= minMoves {
		return "is in an endless loop: no progress after " + v.passed()
	}
	return ""
}

// passed returns the duration of the wait as a text.
func (v *loopDetector) passed() string {
	virtual := time.Duration(v.env.clock.reached.Load() - v.virtual)
	return fmt.Sprintf("%v and %s of virtual time", time.Since(v.began).Round(time.Second), days(virtual))
}

// days formats a duration that may be years.
func days(d time.Duration) string {
	const day = 24 * time.Hour
	if d < 3*day {
		return d.Round(time.Second).String()
	}
	return fmt.Sprintf("%d days", d/day)
}

// hasProgress reports whether an instance has made progress since the last check. Progress is a turn, unless the
// instance continued as new with the same input. A planned function of AfterFunc and an attempt that is still running
// also count as progress, because hasStalled checks for stuck activities. The first check returns false.
func (v *loopDetector) hasProgress(ctx context.Context) bool {
	before, ran, first := v.before, v.ran, v.before == nil
	v.before, v.ran = v.env.progress.now(), v.attempts()
	if first {
		v.from = v.before
		return false
	}
	if _, planned := v.env.agenda.next(); planned {
		return true
	}
	if slices.ContainsFunc(v.ran, func(a attempt) bool { return slices.Contains(ran, a) }) {
		return true
	}
	for id, c := range v.before {
		was, known := before[id]
		if !known || c.turns != was.turns && !v.sameInput(ctx, id, was, c) {
			return true
		}
	}
	return false
}

// attempts returns the running attempts of activities.
func (v *loopDetector) attempts() (all []attempt) {
	for _, c := range v.env.log.running() {
		all = append(all, attempt{c.InstanceID, c.ActivityID, c.StartedAt})
	}
	return all
}

// sameInput reports whether an instance has continued as new with the same input.
func (v *loopDetector) sameInput(ctx context.Context, instanceID string, was, is instanceProgress) (same bool) {
	if was.executionID == is.executionID {
		return false
	}
	v.env.do(func() {
		one, ok := v.inputOf(ctx, instanceID, was.executionID)
		other, okToo := v.inputOf(ctx, instanceID, is.executionID)
		same = ok && okToo && bytes.Equal(one, other)
	})
	return same
}

// inputOf returns the input of an execution. Call it in the bubble.
func (v *loopDetector) inputOf(ctx context.Context, instanceID, executionID string) (in history.Payload, ok bool) {
	for ev, err := range v.env.hub.Provider.ReadHistory(context.WithoutCancel(ctx), instanceID, executionID, 0) {
		return ev.Input, err == nil
	}
	return in, false
}
