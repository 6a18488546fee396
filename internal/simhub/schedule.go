package simhub

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/internal/simaws"
)

// Schedule makes a seed determine the order of all calls on a hub. The same seed gives the same order. The hub must be
// in a testing/synctest bubble, and Scheduler.Run must drive it.
//
// The faults are probabilities (0 to 1) for each call, or for each side of it.
type Schedule struct {
	Seed uint64
	// Crash kills an invocation, before or after a call or during an activity.
	Crash float64
	// Fail fails a call without executing it. Lose loses the response of a call.
	Fail, Lose float64
	// Repeat loses the response of a call that the SDK then repeats. The queue then contains a sent message twice.
	Repeat float64
	// Freeze pauses a process for FreezeFor during a call. Time passes for all other processes, and the process then
	// continues normally.
	Freeze    float64
	FreezeFor time.Duration
	// Apart lets a nanosecond pass after each decision, so that no two decisions have the same time. Otherwise, the
	// timers of processes that wait for the same duration would fire together, and the processes would race.
	Apart bool
	// FaultSteps is the number of decisions after which there are no more faults. Time then stops while any call can
	// proceed, so that the work ends. The default is 500.
	FaultSteps int
	// FaultDuration replaces FaultSteps by a duration in virtual time. It simulates an outage, regardless of the number
	// of decisions.
	FaultDuration time.Duration
}

// Scheduler releases one goroutine at a time. Each AWS call of an invocation parks before it is executed and before its
// result is returned. Each activity parks before its start and before its outcome. When all goroutines of the bubble
// are blocked, the seed selects the next step: it releases a parked goroutine, delivers a batch, or lets time pass.
//
// The scheduler selects parked goroutines by their names, which do not depend on the time at which they parked.
type Scheduler struct {
	schedule Schedule
	cloud    *simaws.Cloud
	begun    time.Time
	rng      *rand.Rand
	pause    float64       // the probability that time passes although a step is possible
	arrived  chan struct{} // capacity 1
	over     chan struct{} // closed by end

	mu        sync.Mutex
	parked    []*point // in order of their names
	seen      map[string]int
	frozen    map[string]time.Time // the end of the freeze of each process, by name
	clients   int
	decisions []decision
}

// point is the point at which a goroutine is parked.
type point struct {
	who, name string
	after     bool // the call is done
	// The faults that are possible at this point.
	crash, fail, repeat, freeze bool
	let                         chan verdict
}

// verdict determines how a parked goroutine continues.
type verdict string

const (
	proceeds verdict = ""
	crashes  verdict = "crashes"
	fails    verdict = "fails"
	repeats  verdict = "repeats"
	freezes  verdict = "freezes" // the goroutine is released later
)

// decision is a step of the scheduler. Without a point, it is a delivery or the passage of time.
type decision struct {
	at      time.Duration
	point   *point
	verdict verdict
	event   string
}

const defaultFaultSteps = 500

func newScheduler(s Schedule) *Scheduler {
	if s.FaultSteps == 0 {
		s.FaultSteps = defaultFaultSteps
	}
	rng := rand.New(rand.NewPCG(s.Seed, 1))
	pauses := []float64{0, 1. / 200, 1. / 50, 1. / 20}
	return &Scheduler{
		schedule: s, begun: bubbleTime(), rng: rng, pause: pauses[rng.IntN(len(pauses))],
		arrived: make(chan struct{}, 1), over: make(chan struct{}), seen: map[string]int{},
		frozen: map[string]time.Time{},
	}
}

// bubbleTime returns the virtual time.
func bubbleTime() time.Time { return time.Now() } //nolint:forbidigo // the clock of the bubble

// Weights of the next steps. Invocations have different weights, so that some are much slower than others.
const (
	fastest       = 16
	deliverWeight = 16
	slownessSteps = 3
)

func (s *Scheduler) weight(who string) int {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d:%s", s.schedule.Seed, who)
	return fastest >> (2 * (h.Sum64() >> 8 % slownessSteps)) //nolint:mnd // a quarter, a sixteenth
}

// weightOf returns the weight of a parked goroutine, which is 0 while its process is frozen.
func (s *Scheduler) weightOf(p *point, now time.Time) int {
	if now.Before(s.frozen[p.who]) {
		return 0
	}
	return s.weight(p.who)
}

// freeze stops a process at a point.
func (s *Scheduler) freeze(p *point, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen[p.who] = now.Add(s.schedule.FreezeFor)
	s.insert(p)
}

// thaws returns the time at which the first frozen process continues, or due if that is earlier.
func (s *Scheduler) thaws(due, now time.Time) time.Time {
	for _, at := range s.frozen {
		if at.After(now) && at.Before(due) {
			due = at
		}
	}
	return due
}

// Frozen returns the number of processes that were frozen. Do not call it while Run is running.
func (s *Scheduler) Frozen() int { return len(s.frozen) }

// insert adds a parked point in order.
func (s *Scheduler) insert(p *point) {
	at, _ := slices.BinarySearchFunc(s.parked, p, func(a, b *point) int { return cmp.Compare(a.name, b.name) })
	s.parked = slices.Insert(s.parked, at, p)
}

// park blocks until the scheduler releases the goroutine.
func (s *Scheduler) park(p *point) verdict {
	p.let = make(chan verdict, 1)
	s.mu.Lock()
	s.seen[p.name]++
	if n := s.seen[p.name]; n > 1 {
		p.name = fmt.Sprintf("%s (%d)", p.name, n)
	}
	s.insert(p)
	s.mu.Unlock()
	s.wake()
	select {
	case v := <-p.let:
		return v
	case <-s.over:
		return crashes
	}
}

func (s *Scheduler) wake() {
	select {
	case s.arrived <- struct{}{}:
	default:
	}
}

// Go runs f on a goroutine as a client of the hub. The AWS calls of the client park under its name, without faults. Run
// returns only after f. Calls of a provider that hold a lock, such as starts of instances, are limited to one client at
// a time.
func (s *Scheduler) Go(ctx context.Context, name string, f func(ctx context.Context)) {
	s.mu.Lock()
	s.clients++
	s.mu.Unlock()
	go func() {
		defer func() {
			s.mu.Lock()
			s.clients--
			s.mu.Unlock()
			s.wake()
		}()
		f(context.WithValue(ctx, invocationKey{}, &invocation{name: name, schedule: s, client: true}))
	}()
}

// Exposed returns a context for a separate client process. The calls of the process park under its name, with the same
// faults as functions. After a crash, all calls of the process fail with ErrCrashed.
func (s *Scheduler) Exposed(ctx context.Context, name string) context.Context {
	ctx, _ = begin(ctx, name, s)
	return ctx
}

// longestPause is the time that the scheduler waits for a timer when no message is delayed.
const longestPause = time.Minute

// mostDecisions is the maximum number of decisions of a run. It is more than any test needs.
const mostDecisions = 100_000

// Run drives the hub until it is at rest: no goroutine is parked, no message is left and no client is running. It fails
// if that takes longer than limit, in virtual time. Call it from the goroutine that created the hub.
func (s *Scheduler) Run(ctx context.Context, limit time.Duration) error {
	deadline := bubbleTime().Add(limit)
	for n := 0; ; n++ {
		synctest.Wait()
		if s.schedule.Apart {
			time.Sleep(time.Nanosecond)
			synctest.Wait()
		}
		s.drainNotifications()
		due, some := s.cloud.NextDue()
		now := bubbleTime()
		switch {
		case s.resting(some):
			return nil
		case n == mostDecisions || !now.Before(deadline):
			return fmt.Errorf("simhub: the hub did not become idle within %v of virtual time and %d decisions",
				now.Sub(s.begun), n)
		case ctx.Err() != nil:
			return fmt.Errorf("simhub: the hub did not become idle: %w", context.Cause(ctx))
		}
		if !some {
			due = now.Add(longestPause)
		}
		s.decide(s.thaws(due, now), now)
	}
}

// drainNotifications drains the notifications, because the scheduler checks everything now.
func (s *Scheduler) drainNotifications() {
	for _, c := range []<-chan struct{}{s.arrived, s.cloud.Changed()} {
		select {
		case <-c:
		default:
		}
	}
}

func (s *Scheduler) resting(due bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !due && len(s.parked) == 0 && s.clients == 0 && s.cloud.InFlight() == 0
}

// decide makes one step. due is the time at which the next message is visible, or of the next check.
func (s *Scheduler) decide(due, now time.Time) {
	faulty := s.faulty(now)
	deliver := 0
	if !due.After(now) {
		deliver = deliverWeight
	} else if faulty && s.rng.Float64() < s.pause {
		s.pass(due)
		return
	}
	switch p := s.pick(deliver, now); {
	case p != nil:
		v := proceeds
		if faulty {
			v = s.verdict(p)
		}
		s.note(decision{point: p, verdict: v})
		if v == freezes {
			s.freeze(p, now)
			return
		}
		p.let <- v
	case deliver == 0:
		s.pass(due)
	case s.cloud.Step():
		s.note(decision{event: "a batch is delivered"})
	default: // the due message became a dead letter
		s.note(decision{event: "nothing is delivered"})
	}
}

// faulty reports whether faults may still happen.
func (s *Scheduler) faulty(now time.Time) bool {
	if s.schedule.FaultDuration > 0 {
		return now.Sub(s.begun) < s.schedule.FaultDuration
	}
	return len(s.decisions) < s.schedule.FaultSteps
}

// pick removes and returns a parked point, or nil. others is the weight of all other steps. Frozen points stay.
func (s *Scheduler) pick(others int, now time.Time) *point {
	s.mu.Lock()
	defer s.mu.Unlock()
	total := others
	for _, p := range s.parked {
		total += s.weightOf(p, now)
	}
	if total == 0 {
		return nil
	}
	x := s.rng.IntN(total)
	for i, p := range s.parked {
		if x -= s.weightOf(p, now); x < 0 {
			s.parked = slices.Delete(s.parked, i, i+1)
			return p
		}
	}
	return nil
}

func (s *Scheduler) verdict(p *point) verdict {
	x := s.rng.Float64()
	for _, f := range []struct {
		verdict verdict
		can     bool
		chance  float64
	}{
		{crashes, p.crash, s.schedule.Crash},
		{fails, p.fail && !p.after, s.schedule.Fail},
		{fails, p.fail && p.after, s.schedule.Lose},
		{repeats, p.repeat && p.after, s.schedule.Repeat},
		{freezes, p.freeze && s.frozen[p.who].IsZero(), s.schedule.Freeze},
	} {
		if !f.can {
			continue
		}
		if x -= f.chance; x < 0 {
			return f.verdict
		}
	}
	return proceeds
}

// pass lets virtual time pass until a timer has caused a parked goroutine or a sent message, or until a message is due.
func (s *Scheduler) pass(until time.Time) {
	from := bubbleTime()
	t := time.NewTimer(until.Sub(from))
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.arrived:
	case <-s.cloud.Changed():
	}
	s.note(decision{event: fmt.Sprintf("%v pass", bubbleTime().Sub(from))})
}

func (s *Scheduler) note(d decision) {
	d.at = bubbleTime().Sub(s.begun)
	s.decisions = append(s.decisions, d)
}

// end releases all parked goroutines with an error. It can be called repeatedly.
func (s *Scheduler) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.over:
	default:
		close(s.over)
	}
}

// Trace returns all decisions so far, one on each line. Do not call it while Run is running.
func (s *Scheduler) Trace() []string { return s.Tail(len(s.decisions)) }

// Tail returns the last n decisions.
func (s *Scheduler) Tail(n int) []string {
	from := max(0, len(s.decisions)-n)
	lines := make([]string, 0, len(s.decisions)-from)
	for i := from; i < len(s.decisions); i++ {
		d := &s.decisions[i]
		var b strings.Builder
		fmt.Fprintf(&b, "%4d %12v  ", i, d.at)
		switch {
		case d.point == nil:
			b.WriteString(d.event)
		case d.verdict == proceeds:
			b.WriteString(d.point.name)
		default:
			fmt.Fprintf(&b, "%s: %s", d.point.name, strings.ToUpper(string(d.verdict)))
		}
		lines = append(lines, b.String())
	}
	return lines
}
