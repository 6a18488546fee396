// Package patience retries calls to services that are unavailable for up to an hour, and reports how long an outage
// lasts.
package patience

import (
	"context"
	"sync"
	"time"
)

const (
	// Longest is the time for which calls are retried while none succeeds. It outlasts an hour of throttling.
	Longest = 65 * time.Minute
	// betweenTold is how often a wait is told, and after how long first.
	betweenTold = time.Minute
	// longestRest bounds the time between two calls.
	longestRest = time.Minute
)

// Patience is the retry budget of calls that fail with transient errors. Each success renews the budget. It is safe for
// concurrent use.
type Patience struct {
	now   func() time.Time
	sleep func(ctx context.Context, d time.Duration) error
	tell  func(soFar time.Duration, err error)

	mu    sync.Mutex
	since time.Time // of the first failure behind the last success; zero: there is none
	told  time.Time
	// successes is how often it was renewed.
	successes int
}

// New returns a full retry budget. While no call succeeds, Failed calls the callback about once a minute, from one
// goroutine at a time, with the duration of the outage and the latest error. The callback may be nil.
func New(now func() time.Time, sleep func(ctx context.Context, d time.Duration) error, tell func(soFar time.Duration, err error)) *Patience {
	return &Patience{now: now, sleep: sleep, tell: tell}
}

// Succeeded renews the retry budget.
func (p *Patience) Succeeded() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since = time.Time{}
	p.successes++
}

// Failed records a transient failure.
func (p *Patience) Failed(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if p.since.IsZero() {
		p.since, p.told = now, now
	}
	if p.tell == nil || now.Sub(p.told) < betweenTold {
		return
	}
	p.told = now
	p.tell(now.Sub(p.since), err)
}

// IsOver reports whether no call has succeeded for Longest.
func (p *Patience) IsOver() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.since.IsZero() && p.now().Sub(p.since) >= Longest
}

// Rests returns a function that returns the delay before each next call: 1 second, then twice as long each time, up to
// a minute.
func Rests() func() time.Duration {
	rest := time.Second / 2 //nolint:mnd // so that the first is a second
	return func() time.Duration {
		rest = min(2*rest, longestRest)
		return rest
	}
}

// renewed returns how often it was renewed.
func (p *Patience) renewed() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.successes
}

// Do calls f until it succeeds, until passes returns false for its error, until the retry budget is exhausted, or until
// ctx ends. If f reports progress (Succeeded) before it fails, the delays start again at 1 second.
func (p *Patience) Do(ctx context.Context, passes func(error) bool, f func() error) error {
	for rest, successes := Rests(), p.renewed(); ; {
		err := f()
		if n := p.renewed(); n > successes {
			rest, successes = Rests(), n
		}
		if err == nil {
			p.Succeeded()
			return nil
		}
		if !passes(err) || ctx.Err() != nil {
			return err
		}
		if p.Failed(err); p.IsOver() {
			return err
		}
		if err := p.sleep(ctx, rest()); err != nil {
			return err
		}
	}
}
