// Package retrybudget retries calls to services that are unavailable for up to an hour, and reports how long an outage
// lasts.
package retrybudget

import (
	"context"
	"sync"
	"time"
)

const (
	// Longest is the time for which calls are retried while none succeeds. It outlasts an hour of throttling.
	Longest = 65 * time.Minute
	// reportInterval is the time between two reports of an outage, and from its start to the first report.
	reportInterval = time.Minute
	// maxDelay bounds the time between two calls.
	maxDelay = time.Minute
)

// Budget is the retry budget of calls that fail with transient errors. Each success renews the budget. It is safe for
// concurrent use.
type Budget struct {
	now    func() time.Time
	sleep  func(ctx context.Context, d time.Duration) error
	report func(elapsed time.Duration, err error)

	mu         sync.Mutex
	since      time.Time // of the first failure after the last success; zero: none
	reportedAt time.Time
	successes  int
}

// New returns a full retry budget. While no call succeeds, Failed calls report about once a minute, from one goroutine
// at a time, with the duration of the outage and the latest error. The function may be nil.
func New(
	now func() time.Time, sleep func(ctx context.Context, d time.Duration) error,
	report func(elapsed time.Duration, err error),
) *Budget {
	return &Budget{now: now, sleep: sleep, report: report}
}

// Succeeded renews the retry budget.
func (b *Budget) Succeeded() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.since = time.Time{}
	b.successes++
}

// Failed records a transient failure.
func (b *Budget) Failed(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if b.since.IsZero() {
		b.since, b.reportedAt = now, now
	}
	if b.report == nil || now.Sub(b.reportedAt) < reportInterval {
		return
	}
	b.reportedAt = now
	b.report(now.Sub(b.since), err)
}

// Exhausted reports whether no call has succeeded for Longest.
func (b *Budget) Exhausted() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.since.IsZero() && b.now().Sub(b.since) >= Longest
}

// Delays returns a function that returns the delay before each next call: 1 second, then twice as long each time, up to
// a minute.
func Delays() func() time.Duration {
	delay := time.Second / 2 //nolint:mnd // doubled before the first use
	return func() time.Duration {
		delay = min(2*delay, maxDelay)
		return delay
	}
}

// renewals returns the number of renewals of the budget.
func (b *Budget) renewals() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.successes
}

// Do calls f until it succeeds, until transient returns false for its error, until the retry budget is exhausted, or
// until ctx ends. If f reports progress (Succeeded) before it fails, the delays start again at 1 second.
func (b *Budget) Do(ctx context.Context, transient func(error) bool, f func() error) error {
	for delay, successes := Delays(), b.renewals(); ; {
		err := f()
		if n := b.renewals(); n > successes {
			delay, successes = Delays(), n
		}
		if err == nil {
			b.Succeeded()
			return nil
		}
		if !transient(err) || ctx.Err() != nil {
			return err
		}
		if b.Failed(err); b.Exhausted() {
			return err
		}
		if err := b.sleep(ctx, delay()); err != nil {
			return err
		}
	}
}
