package probes

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// groupRate sends messages to one group at a steady rate below its quota. The client does not repeat them.
func (p *queueProbes) groupRate(ctx context.Context) (string, error) {
	const group = "rate"
	return p.steadily(ctx, load{
		calls: 1_000, pause: 4 * time.Millisecond, // 250 messages a second, the quota is 300
		what: "sends to a group",
		call: func(ctx context.Context, n int64) error {
			return p.sendOnce(ctx, p.RateURL, grouped(group, group, strconv.FormatInt(n, 10)))
		},
	})
}

// load is a number of calls at a steady rate.
type load struct {
	calls int64
	pause time.Duration // between the calls
	what  string
	call  func(ctx context.Context, n int64) error
}

// steadily makes the calls of a load, which must not be throttled.
func (c clock) steadily(ctx context.Context, l load) (string, error) {
	const (
		callers = 64  // concurrent calls, for latencies of many pauses
		late    = 1.2 // the ratio of the times from which the machine is too slow
		few     = 20  // one of so many calls may be throttled for another reason
	)
	var made, throttled atomic.Int64
	var failed atomic.Pointer[error]
	began := c.Now()
	due := pacer{next: began, pause: l.pause}
	var running sync.WaitGroup
	for range callers {
		running.Go(func() {
			for n := made.Add(1); n <= l.calls && failed.Load() == nil; n = made.Add(1) {
				err := c.Sleep(ctx, due.wait(c.Now()))
				if err == nil {
					err = l.call(ctx, n)
				}
				switch {
				case isThrottling(codeOf(err)):
					throttled.Add(1)
				case err != nil:
					failed.Store(&err)
				}
			}
		})
	}
	running.Wait()
	if err := failed.Load(); err != nil {
		return "", undecided(*err)
	}
	took, planned := c.Now().Sub(began), time.Duration(l.calls)*l.pause
	detail := fmt.Sprintf("%d of %d %s in %v were throttled", throttled.Load(), l.calls, l.what,
		took.Round(time.Millisecond))
	switch {
	case float64(took) > late*float64(planned):
		return "", undecided(fmt.Errorf("this machine is too slow for %v: %s", planned, detail))
	case throttled.Load() > l.calls/few:
		return "", errors.New(detail)
	}
	return detail, nil
}

// pacer spaces calls. Late calls do not make the next ones faster.
type pacer struct {
	mu    sync.Mutex
	next  time.Time
	pause time.Duration
}

// wait returns the time until the next call.
func (p *pacer) wait(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next.Before(now) {
		p.next = now
	}
	due := p.next
	p.next = due.Add(p.pause)
	return due.Sub(now)
}
