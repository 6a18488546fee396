package perduretest

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/replay"
)

// What code does that is not blocked on virtual time, a mutex, a system call or a long loop, holds that time still, and with it the whole Env. So
// each wait for the bubble is watched from outside, in real time.

// watch is how long the Env waits, in real time, for code that does not come back.
type watch struct {
	env *Env
	// bubble is what the runtime calls the bubble.
	bubble string
	// patience is for code that computes, or that waits for the network. Code that waits for a lock or a channel gets a part of it.
	patience time.Duration
}

const (
	defaultPatience = time.Minute
	// blockedShare of the patience is enough for code that waits for a lock or a channel: nothing is on its way.
	blockedShare = 12
	// looks is how often the goroutines are looked at in that time. All of them must find the same.
	looks = 5
)

// await waits for done. When code hangs, it fails the test and leaves the bubble behind. Where only the clock stands still, since there is no end to what
// happens at one moment, the bubble stops there.
func (w *watch) await(done <-chan struct{}) {
	w.env.t.Helper()
	limit, most := w.patience/blockedShare, w.share()
	tick := time.NewTicker(limit / looks)
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
		all := w.goroutines()
		awake := awakeOf(all)
		if now := fingerprint(awake); now == before && now != "" && len(w.env.network.goroutines()) == 0 {
			same++
		} else {
			before, same = now, 0
		}
		stood.look(w, append(awake, all...))
		switch tooLong := time.Since(stood.since) > w.patience || most > 0 && time.Since(began) > most; {
		case same >= looks:
			w.giveUp(awake, &stood)
		case tooLong:
			w.halt(done, &stood)
			w.giveUp(awake, &stood)
		}
	}
}

// standstill is the moment of virtual time that a call has come to, and how long that lasts.
type standstill struct {
	began   time.Time         // when the call did, in real time
	from    map[string]course // how far instances were at the first look
	reached int64             // the moment
	since   time.Time         // when it began, in real time
	seen    []string          // what users' code was seen to do in it, the last first
}

// look notes where virtual time is, and what is done meanwhile.
func (s *standstill) look(w *watch, goroutines []goroutine) {
	if now := w.env.clock.now(); now != s.reached {
		s.reached, s.since, s.seen = now, time.Now(), nil
	}
	if s.from == nil {
		s.from = w.env.progress.now()
	}
	var seen []string
	for _, g := range goroutines {
		if where := replay.Where(g.stack); where != "" {
			text := g.who() + " in " + where
			if !slices.Contains(seen, text) {
				seen = append(seen, text)
			}
		}
		if len(seen) == mostShown {
			break
		}
	}
	for _, text := range append(seen, s.seen...) {
		if !slices.Contains(seen, text) && len(seen) < mostShown {
			seen = append(seen, text)
		}
	}
	s.seen = seen
}

// halt has nothing more begin, and fails the test if that ends the call: then no code hangs, and the bubble is not left behind.
func (w *watch) halt(done <-chan struct{}, stood *standstill) {
	w.env.t.Helper()
	moved := w.env.progress.since(stood.from)
	advances := time.Since(stood.since) <= w.patience/blockedShare
	if moved == "" && !advances {
		return // no turn, and virtual time stands still: code hangs
	}
	w.env.clock.halted.Store(true)
	select {
	case <-done:
	case <-time.After(w.patience / blockedShare):
		return
	}
	at := time.Unix(0, stood.reached).UTC()
	what := fmt.Sprintf("endless loop: virtual time has not advanced from %v for %v, while",
		at, time.Since(stood.since).Round(time.Second))
	if time.Since(stood.since) <= w.patience {
		what = fmt.Sprintf("still active after %v, half of the remaining -timeout of go test, at the virtual time %v:",
			time.Since(stood.began).Round(time.Second), at)
	}
	w.env.t.Fatalf("perduretest: %s%s%s%s", what, moved, stood.sightings(), w.hint())
}

// sightings are what users' code was seen to do.
func (s *standstill) sightings() string {
	var b strings.Builder
	for _, text := range s.seen {
		b.WriteString("\n  (observed: " + text + ")")
	}
	return b.String()
}

// giveUp ends the test whose code hangs. What hangs is left behind, so that other tests go on.
func (w *watch) giveUp(awake []goroutine, stood *standstill) {
	w.env.t.Helper()
	whose := describeAll(w.culprits(awake))
	if whose == "" {
		whose = stood.sightings() // none was awake at that instant
	}
	report := fmt.Sprintf("perduretest: code hangs, so that virtual time cannot advance:%s%s", whose, w.hint())
	if slices.ContainsFunc(awake, goroutine.usesNetwork) {
		report += networkHint
		fmt.Fprintf(os.Stderr, "%s: %s\n", w.env.t.Name(), report) // the process may not live to show what is reported
	}
	w.env.t.Error(report)
	w.env.givenUp.Store(true)
	w.env.leave()
	w.env.t.FailNow()
}

// stop ends the calling goroutine, whose call cannot be made any more: the Env is over, or code hangs in it.
func (w *watch) stop() {
	if !strings.Contains(string(debug.Stack()), "testing.tRunner") {
		runtime.Goexit() // it is not the test's, which may be over
	}
	w.env.t.FailNow()
}

// culprits are those that others wait for: activities that run outside of the bubble, where there are any.
func (w *watch) culprits(awake []goroutine) []goroutine {
	outside := w.env.network.goroutines()
	if len(outside) == 0 {
		return awake
	}
	return slices.DeleteFunc(allGoroutines(), func(g goroutine) bool { return !slices.Contains(outside, g.id) })
}

// goroutine is one, as the runtime prints it.
type goroutine struct {
	id, state, bubble string
	// durable: it is blocked on something in its bubble.
	durable bool
	stack   string
}

// header is the first line of a goroutine's stack: "goroutine 7 [sync.Mutex.Lock, 2 minutes, synctest bubble 3]:".
var header = regexp.MustCompile(`^goroutine (\d+)[^\[]*\[([^\],]*)([^\]]*)\]:`)

func parseGoroutine(stack string) goroutine {
	m := header.FindStringSubmatch(stack)
	if m == nil {
		return goroutine{}
	}
	g := goroutine{id: m[1], stack: stack}
	g.state, g.durable = strings.CutSuffix(m[2], " (durable)")
	if _, bubble, ok := strings.Cut(m[3], "synctest bubble "); ok {
		g.bubble, _, _ = strings.Cut(bubble, ",")
	}
	return g
}

// headerBytes is enough for the first line of a stack.
const headerBytes = 128

// thisGoroutine is the calling one, without its stack.
func thisGoroutine() goroutine {
	var b [headerBytes]byte
	return parseGoroutine(string(b[:runtime.Stack(b[:], false)]))
}

// processStart is before all times outside of bubbles. The clock of a bubble starts in the year 2000.
var processStart = time.Now()

// isInside reports whether the calling goroutine belongs to the bubble.
func (w *watch) isInside() bool {
	if time.Now().Before(processStart) {
		return true
	}
	if !w.env.clock.isPast(processStart) {
		return false
	}
	g := thisGoroutine() // slow: virtual time is in the future
	return g.bubble != "" && g.bubble == w.bubble
}

// goroutines are those of the bubble.
func (w *watch) goroutines() []goroutine {
	return slices.DeleteFunc(allGoroutines(), func(g goroutine) bool { return g.bubble == "" || g.bubble != w.bubble })
}

func allGoroutines() []goroutine {
	b := make([]byte, 1<<20)
	for n := runtime.Stack(b, true); ; n = runtime.Stack(b, true) {
		if n < len(b) {
			b = b[:n]
			break
		}
		b = make([]byte, 2*len(b))
	}
	var found []goroutine
	for one := range strings.SplitSeq(string(b), "\n\n") {
		found = append(found, parseGoroutine(one))
	}
	return found
}

// awakeOf are those among the goroutines of the bubble that hold virtual time still.
func awakeOf(all []goroutine) (awake []goroutine) {
	for _, g := range all {
		if !g.durable {
			awake = append(awake, g)
		}
	}
	return awake
}

// ofUsers are the goroutines of the bubble that run code of a user's.
func (w *watch) ofUsers() []goroutine {
	return slices.DeleteFunc(w.goroutines(), func(g goroutine) bool { return replay.Where(g.stack) == "" })
}

// blocking are the states of goroutines that wait for another one.
var blocking = []string{"sync.Mutex.Lock", "sync.RWMutex.Lock", "sync.RWMutex.RLock", "sync.Cond.Wait", "sync.WaitGroup.Wait", "chan receive", "chan send", "select", "semacquire"}

// fingerprint is what goroutines wait for, where all wait for another one; empty otherwise.
func fingerprint(awake []goroutine) string {
	var b strings.Builder
	for _, g := range awake {
		if !slices.ContainsFunc(blocking, func(s string) bool { return strings.HasPrefix(g.state, s) }) {
			return ""
		}
		fmt.Fprintf(&b, "%s %s;", g.id, g.state)
	}
	return b.String()
}

// doing says what a goroutine in a state does.
func doing(state string) string {
	switch {
	case state == "running", state == "runnable":
		return "computes"
	case strings.HasPrefix(state, "sync.Mutex"), strings.HasPrefix(state, "sync.RWMutex"):
		return "waits for a mutex"
	case strings.HasPrefix(state, "chan receive"):
		return "waits to receive from a channel"
	case strings.HasPrefix(state, "chan send"):
		return "waits to send on a channel"
	case state == "IO wait":
		return "waits for the network or a file"
	default:
		return "waits (" + state + ")"
	}
}

// describe is what a goroutine does, and where.
func (g goroutine) describe() string {
	return fmt.Sprintf("%s %s, in %s", g.who(), doing(g.state), cmp.Or(replay.Where(g.stack),
		"code of perdure or Go:\n"+g.stack))
}

// isOrchestration reports whether a goroutine runs the code of an orchestration.
func (g goroutine) isOrchestration() bool {
	return strings.Contains(g.stack, "perdure.runOrchestration")
}

// who is whose code a goroutine runs.
func (g goroutine) who() string {
	switch {
	case g.isOrchestration():
		return "an orchestration"
	case strings.Contains(g.stack, "perdure.runActivity"):
		return "an activity"
	default:
		return "a goroutine"
	}
}

func describeAll(gs []goroutine) string {
	var b strings.Builder
	for _, g := range gs {
		b.WriteString("\n  " + g.describe())
	}
	return b.String()
}

// networkHint is for a test that does not know of WithNetwork. A connection of the bubble that is closed by others, as httptest.Server.Close does, ends
// the process.
const networkHint = "\nUse WithNetwork for activities that use the network. Keep-alive connections do not work in " +
	"virtual time: closing or using one from another test ends the process."

func (g goroutine) usesNetwork() bool {
	return g.state == "IO wait" || strings.Contains(g.stack, "net/http.")
}

// hint is what helps to find out.
func (w *watch) hint() string {
	running := map[string]bool{}
	for _, c := range w.env.log.running() {
		running[fmt.Sprintf("\n  (running: activity %q of instance %q, attempt %d)", c.Activity, c.InstanceID, c.Attempt)] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(running)), "")
}

// unfinished describes the activities that run, and where they are.
func (w *watch) unfinished() string {
	var b strings.Builder
	for _, c := range w.env.log.running() {
		fmt.Fprintf(&b, "\n  activity %q of instance %q, attempt %d, in %s", c.Activity, c.InstanceID, c.Attempt, w.whereabouts(c.goroutine))
	}
	return b.String()
}

// whereabouts are the frames of user code that a goroutine is in.
func (w *watch) whereabouts(id string) string {
	for _, g := range w.goroutines() {
		if g.id == id {
			return replay.Where(g.stack)
		}
	}
	return "code that has ended"
}
