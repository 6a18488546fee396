package perduretest

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/perduretest/internal/goroutines"
)

// Code that loops, or that blocks on a mutex or a system call, stops virtual time and the whole Env. A watchdog outside
// of the bubble therefore checks each wait in real time.

// watchdog ends a test whose code does not return.
type watchdog struct {
	env *Env
	// bubble is the name of the bubble in goroutine dumps.
	bubble string
	// hangTimeout is the real time for code that computes or waits for the network. Code that waits for a lock or a
	// channel has a shorter limit (blockedShare).
	hangTimeout time.Duration
}

const (
	defaultHangTimeout = time.Minute
	// blockedShare is the divisor of hangTimeout for code that waits for a lock or a channel.
	blockedShare = 12
	// checks is the number of checks of the goroutines in that time. Code hangs if all checks find the same state.
	checks = 5
)

// await waits for done. If code hangs, it fails the test and abandons the bubble. If the work at one moment of virtual
// time does not end, it stops the bubble.
func (w *watchdog) await(done <-chan struct{}) {
	w.env.t.Helper()
	limit, most := w.hangTimeout/blockedShare, w.share()
	tick := time.NewTicker(limit / checks)
	defer tick.Stop()

	began := time.Now()
	stood := standstill{began: began, reached: w.env.clock.now(), since: began}
	before, same := "", 0
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		select { // on a busy machine, both channels can be ready
		case <-done:
			return
		default:
		}
		all := w.goroutines()
		awake := goroutines.Awake(all)
		if now := goroutines.Fingerprint(awake); now == before && now != "" && len(w.env.network.goroutines()) == 0 {
			same++
		} else {
			before, same = now, 0
		}
		stood.observe(w, append(awake, all...))
		switch tooLong := time.Since(stood.since) > w.hangTimeout || most > 0 && time.Since(began) > most; {
		case same >= checks:
			w.abandon(awake, &stood)
		case tooLong:
			w.halt(done, &stood)
			w.abandon(awake, &stood)
		}
	}
}

// standstill measures the real time that a moment of virtual time lasts.
type standstill struct {
	began   time.Time                   // start of the call in real time
	from    map[string]instanceProgress // progress at the first check
	reached int64                       // current moment of virtual time
	since   time.Time                   // start of that moment in real time
	seen    []string                    // observed user code, latest first
}

// observe records the virtual time and the running user code.
func (s *standstill) observe(w *watchdog, goroutines []goroutines.Goroutine) {
	if now := w.env.clock.now(); now != s.reached {
		s.reached, s.since, s.seen = now, time.Now(), nil
	}
	if s.from == nil {
		s.from = w.env.progress.now()
	}
	var seen []string
	for _, g := range goroutines {
		if where := g.Where(); where != "" {
			text := g.Owner() + " in " + where
			if !slices.Contains(seen, text) {
				seen = append(seen, text)
			}
		}
		if len(seen) == maxShown {
			break
		}
	}
	for _, text := range append(seen, s.seen...) {
		if !slices.Contains(seen, text) && len(seen) < maxShown {
			seen = append(seen, text)
		}
	}
	s.seen = seen
}

// halt stops the clock. If the call then ends, no code hangs, and halt fails the test without abandoning the bubble.
func (w *watchdog) halt(done <-chan struct{}, stood *standstill) {
	w.env.t.Helper()
	moved := w.env.progress.since(stood.from)
	advances := time.Since(stood.since) <= w.hangTimeout/blockedShare
	if moved == "" && !advances {
		return // code hangs, because no turn was made and virtual time has stopped
	}
	w.env.clock.halted.Store(true)
	select {
	case <-done:
	case <-time.After(w.hangTimeout / blockedShare):
		return
	}
	at := time.Unix(0, stood.reached).UTC()
	what := fmt.Sprintf("endless loop: virtual time has not advanced from %v for %v, while",
		at, time.Since(stood.since).Round(time.Second))
	if time.Since(stood.since) <= w.hangTimeout {
		what = fmt.Sprintf("still active after %v, half of the remaining -timeout of go test, at the virtual time %v:",
			time.Since(stood.began).Round(time.Second), at)
	}
	w.env.t.Fatalf("perduretest: %s%s%s%s", what, moved, stood.observations(), w.hint())
}

// observations describes the observed user code.
func (s *standstill) observations() string {
	var b strings.Builder
	for _, text := range s.seen {
		b.WriteString("\n  (observed: " + text + ")")
	}
	return b.String()
}

// abandon fails the test and abandons the bubble, so that other tests continue.
func (w *watchdog) abandon(awake []goroutines.Goroutine, stood *standstill) {
	w.env.t.Helper()
	whose := goroutines.DescribeAll(w.hanging(awake))
	if whose == "" {
		whose = stood.observations() // no goroutine was awake at the last check
	}
	report := fmt.Sprintf("perduretest: code hangs, so that virtual time cannot advance:%s%s", whose, w.hint())
	if slices.ContainsFunc(awake, goroutines.Goroutine.UsesNetwork) {
		report += networkHint
		fmt.Fprintf(os.Stderr, "%s: %s\n", w.env.t.Name(), report) // the process may end before the test does
	}
	w.env.t.Error(report)
	w.env.abandoned.Store(true)
	w.env.close()
	w.env.t.FailNow()
}

// stop ends the calling goroutine, because the Env has ended or its code hangs.
func (w *watchdog) stop() {
	if !strings.Contains(string(debug.Stack()), "testing.tRunner") {
		runtime.Goexit() // only this goroutine, because the test may have ended
	}
	w.env.t.FailNow()
}

// hanging returns the goroutines that hang. These are the activities outside of the bubble or, without such
// activities, the awake goroutines.
func (w *watchdog) hanging(awake []goroutines.Goroutine) []goroutines.Goroutine {
	outside := w.env.network.goroutines()
	if len(outside) == 0 {
		return awake
	}
	return slices.DeleteFunc(goroutines.All(), func(g goroutines.Goroutine) bool {
		return !slices.Contains(outside, g.ID)
	})
}

// processStart distinguishes real time from virtual time. The clock of a bubble starts in the year 2000.
var processStart = time.Now()

// isInside reports whether the calling goroutine belongs to the bubble.
func (w *watchdog) isInside() bool {
	if time.Now().Before(processStart) {
		return true
	}
	if !w.env.clock.isPast(processStart) {
		return false
	}
	g := goroutines.Current() // slow, so used only if virtual time is after processStart
	return g.Bubble != "" && g.Bubble == w.bubble
}

// goroutines returns the goroutines of the bubble.
func (w *watchdog) goroutines() []goroutines.Goroutine {
	return slices.DeleteFunc(goroutines.All(), func(g goroutines.Goroutine) bool {
		return g.Bubble == "" || g.Bubble != w.bubble
	})
}

// ofUsers returns the goroutines of the bubble that run user code.
func (w *watchdog) ofUsers() []goroutines.Goroutine {
	return slices.DeleteFunc(w.goroutines(), func(g goroutines.Goroutine) bool { return g.Where() == "" })
}

// networkHint suggests WithNetwork. If other tests close a connection of the bubble, as httptest.Server.Close does, the
// process ends.
const networkHint = "\nUse WithNetwork for activities that use the network. Keep-alive connections do not work in " +
	"virtual time: closing or using one from another test ends the process."

// hint lists the running activities.
func (w *watchdog) hint() string {
	running := map[string]bool{}
	for _, c := range w.env.log.running() {
		text := fmt.Sprintf("\n  (running: activity %q of instance %q, attempt %d)",
			c.Activity, c.InstanceID, c.Attempt)
		running[text] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(running)), "")
}

// unfinished describes the running activities and their code.
func (w *watchdog) unfinished() string {
	var b strings.Builder
	for _, c := range w.env.log.running() {
		fmt.Fprintf(&b, "\n  activity %q of instance %q, attempt %d, in %s",
			c.Activity, c.InstanceID, c.Attempt, w.userCodeOf(c.goroutine))
	}
	return b.String()
}

// userCodeOf returns the user code that a goroutine runs.
func (w *watchdog) userCodeOf(id string) string {
	for _, g := range w.goroutines() {
		if g.ID == id {
			return g.Where()
		}
	}
	return "code that has ended"
}
