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
	const (
		group    = "rate"
		senders  = 64 // concurrent calls, for latencies up to 250 ms
		messages = 1_000
		pause    = 4 * time.Millisecond // 250 messages a second, the quota is 300
		late     = 1.2                  // the ratio of the times from which the machine is too slow
		few      = messages / 20        // throttled calls that have another cause
	)
	var sent, throttled atomic.Int64
	var failed atomic.Pointer[error]
	began := p.Now()
	due := pacer{next: began, pause: pause}
	var running sync.WaitGroup
	for range senders {
		running.Go(func() {
			for n := sent.Add(1); n <= messages && failed.Load() == nil; n = sent.Add(1) {
				err := p.Sleep(ctx, due.wait(p.Now()))
				if err == nil {
					err = p.sendOnce(ctx, p.RateURL, grouped(group, group, strconv.FormatInt(n, 10)))
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
	took, planned := p.Now().Sub(began), messages*pause
	detail := fmt.Sprintf("%d of %d sends to a group in %v were throttled", throttled.Load(), messages,
		took.Round(time.Millisecond))
	switch {
	case float64(took) > late*float64(planned):
		return "", undecided(fmt.Errorf("this machine is too slow for %v: %s", planned, detail))
	case throttled.Load() > few:
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
