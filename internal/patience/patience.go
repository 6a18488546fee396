// Package patience waits for services that refuse calls for a while: for an hour, and says how long it has lasted.
package patience

import (
	"context"
	"sync"
	"time"
)

const (
	// Longest is for how long calls are repeated while none succeeds: an hour of throttling is survived.
	Longest = 65 * time.Minute
	// betweenTold is how often a wait is told, and after how long first.
	betweenTold = time.Minute
	// longestRest bounds the time between two calls.
	longestRest = time.Minute
)

// Patience is how long calls are waited for that fail and may yet succeed. Each success renews it. It is safe for concurrent use.
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

// New returns a fresh patience. tell may be nil; it is called about once a minute while nothing succeeds, one call after the other, with
// how long that has lasted and the latest error.
func New(now func() time.Time, sleep func(ctx context.Context, d time.Duration) error, tell func(soFar time.Duration, err error)) *Patience {
	return &Patience{now: now, sleep: sleep, tell: tell}
}

// Succeeded renews all patience.
func (p *Patience) Succeeded() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since = time.Time{}
	p.successes++
}

// Failed notes a failure that may pass.
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

// IsOver reports whether nothing has succeeded for Longest.
func (p *Patience) IsOver() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.since.IsZero() && p.now().Sub(p.since) >= Longest
}

// Rests yields how long to wait before each next call: a second, then twice as long each time, up to a minute.
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

// Do calls f until it succeeds, or fails in a way that does not pass, or the patience is over, or ctx ends. Where f has got on
// before it failed (Succeeded), the rests begin anew.
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
