package main

import (
	"context"
	"errors"
	"io"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/fakeprovider"
	"github.com/perdure/perdure/provider"
)

// clock is a ticker that the test controls.
type clock struct {
	every    time.Duration
	ticks    chan time.Time
	reported chan struct{}
	awaited  atomic.Bool
	standard io.Writer
}

// byClock makes the tool use a clock for progress lines.
func (h *tool) byClock() *clock {
	c := &clock{ticks: make(chan time.Time), reported: make(chan struct{}), standard: &h.err}
	h.ticker = func(every time.Duration) (<-chan time.Time, func()) {
		c.every = every
		return c.ticks, func() {}
	}
	h.stderr = c
	return c
}

// tick advances the clock and returns after the tool has printed its progress.
func (c *clock) tick() {
	c.awaited.Store(true)
	c.ticks <- began
	<-c.reported
}

// Write implements io.Writer.
func (c *clock) Write(b []byte) (int, error) {
	n, err := c.standard.Write(b)
	if c.awaited.CompareAndSwap(true, false) {
		c.reported <- struct{}{}
	}
	return n, err
}

// slow calls lists before each list of instances, and reads before each read of a history.
type slow struct {
	*fakeprovider.Provider
	lists, reads func()
}

func (s *slow) ListInstances(ctx context.Context, q provider.ListQuery) (provider.Page, error) {
	s.lists()
	return s.Provider.ListInstances(ctx, q)
}

func (s *slow) ReadHistory(
	ctx context.Context, instanceID, executionID string, after int64,
) iter.Seq2[history.Event, error] {
	s.reads()
	return s.Provider.ReadHistory(ctx, instanceID, executionID, after)
}

// The tool prints progress every minute in a log, and every ten seconds on a terminal.
func TestProgress_longCommand_isPrintedAtIntervals(t *testing.T) {
	t.Parallel()
	const listed, replayed = "perdure: 0 instances read\n",
		"perdure: 0 of 1 instances replayed, 0 would be blocked, 0 unreadable\n"
	for interactive, every := range map[bool]time.Duration{true: 10 * time.Second, false: time.Minute} {
		for _, tt := range []struct {
			args []string
			want string
		}{
			{[]string{"versions"}, listed},
			{[]string{"versions", "--json"}, listed},
			{
				[]string{"versions", "--changes"},
				"perdure: 0 histories read, 0 unreadable\n" + "perdure: 0 histories read, 0 unreadable\n",
			},
			{[]string{"verify", "--binary", orchestratorOf(t, "same")}, listed + replayed},
		} {
			h := setup(t)
			fulfilling(h, "a")
			c := h.byClock()
			h.interactive = interactive
			h.client = client.New(&slow{h.Provider, c.tick, c.tick})
			h.mustRun(tt.args...)
			if got := h.err.String(); got != tt.want || c.every != every {
				t.Errorf("%v, interactive: %v: printed every %v:\n%s", tt.args, interactive, c.every, got)
			}
		}
	}
}

func TestProgress_serviceThrottles_isMentioned(t *testing.T) {
	t.Parallel()
	h, b := scanning(t, false, 300<<10)
	c := h.byClock()
	b.fails = func(reads int) error {
		if reads == 1 {
			return &provider.Error{Op: "S3.GetObject", Retryable: true, Err: errors.New("503\nSlowDown")}
		}
		c.tick()
		return nil
	}
	h.sleep = func(context.Context, time.Duration) error {
		c.tick()
		return nil
	}
	if exit, _ := h.verified("takes"); exit != 0 {
		t.Errorf("exit %d, %s", exit, h.err.String())
	}
	const reached = "perdure: 0 of 1 instances replayed, 0 would be blocked, 0 unreadable"
	const waits = "; retrying after client: stored payload: "
	if got := h.err.String(); !strings.HasPrefix(got, reached+waits) ||
		!strings.HasSuffix(got, "503 SlowDown\n"+reached+"\n") || strings.Count(got, "\n") != 2 {
		t.Errorf("got\n%s", got)
	}
}
